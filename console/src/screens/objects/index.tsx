export { ObjectsScreen } from "./list/ObjectsScreen";
export { NewObjectScreen } from "./create/NewObjectScreen";
export { ObjectScreen } from "./object/ObjectScreen";
