import { Spotlight, spotlight } from "@mantine/spotlight";
import { useEffect } from "react";
import { closePalette, usePaletteOpened } from "./palette-store";

export default function Palette() {
  const opened = usePaletteOpened();
  useEffect(() => (opened ? spotlight.open() : undefined), [opened]);
  return <Spotlight actions={[]} onSpotlightClose={closePalette} />;
}
