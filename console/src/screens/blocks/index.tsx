export { BlockScreen } from "./BlockScreen";
export { BlocksScreen } from "./BlocksScreen";
export { InstallBlockScreen } from "./InstallBlockScreen";
