export { NewRecordScreen } from "./NewRecordScreen";
export { RecordPanel, type RecordPanelProps } from "./RecordPanel";
export { RecordScreen } from "./RecordScreen";
