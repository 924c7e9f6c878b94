export { RoleScreen } from "./RoleScreen";
export { RolesScreen } from "./RolesScreen";
