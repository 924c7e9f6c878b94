export { type ConfirmOptions, confirm } from "./confirm-store";
