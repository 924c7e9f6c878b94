/** Whether the command palette is open. Its code is loaded when it opens for the first time. */
import { observable } from "../../api/observable";

const opened = observable(false);

export const openPalette = (): void => opened.set(true);
export const closePalette = (): void => opened.set(false);
export const usePaletteOpened = opened.useValue;
