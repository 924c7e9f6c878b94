/** The groups as a table, with all digits of the results. It is also the text of the charts. */
import { useMemo } from "react";
import { type JsonValue, printJson } from "../../../api/json";
import type { GroupRow } from "../../../api/record-paths";
import { type Column, DataTable } from "../../../components/DataTable";
import { Value } from "../../../components/Value";
import type { RecordShape } from "../columns";
import type { Grouping } from "../views/grouping";
import { resultText } from "./labels";
import { type GroupField, type GroupFunction, resultShape } from "./request";
import classes from "./Groups.module.css";

const FIELD_PX = 190;
const FUNCTION_PX = 150;

export interface GroupsTableProps {
  shape: RecordShape;
  grouping: Grouping;
  fields: GroupField[];
  functions: GroupFunction[];
  rows: GroupRow[];
  labelOf: (field: GroupField, value: JsonValue | undefined) => string;
  onSort: (sort: Grouping["sort"]) => void;
  onPick: (row: GroupRow) => void;
}

const rowId = ({ group }: GroupRow) => printJson(group);

export function GroupsTable({ shape, grouping, fields, functions, rows, labelOf, onSort, onPick }: GroupsTableProps) {
  const columns = useMemo((): Column<GroupRow>[] => {
    const { byId } = resultShape(grouping, shape);
    // A field and a function can have the same key. The server cannot sort by it.
    const idOf = (key: string, kind: string) => (byId.has(key) ? key : `${kind} ${key}`);
    return [
      ...fields.map((field): Column<GroupRow> => ({
        id: idOf(field.key, "field"),
        header: field.label,
        width: FIELD_PX,
        sortable: byId.has(field.key),
        cell: ({ group }) => {
          const value = group[field.key];
          const label = labelOf(field, value);
          if (value === null) return <span className="dim">{label}</span>;
          return <bdi data-tip={typeof value === "string" && value !== label ? value : undefined}>{label}</bdi>;
        },
      })),
      ...functions.map((of): Column<GroupRow> => ({
        id: idOf(of.key, "function"),
        header: of.label,
        width: FUNCTION_PX,
        numeric: true,
        sortable: byId.has(of.key),
        cell: (row) => {
          const text = resultText(row[of.key], of);
          return text === null ? <Value value={null} /> : <span className={classes.number}>{text}</span>;
        },
      })),
    ];
  }, [shape, grouping, fields, functions, labelOf]);
  const narrow = [columns[0], columns[fields.length]].flatMap((column) => (column === undefined ? [] : [column.id]));
  const [sort] = grouping.sort;
  return (
    <DataTable
      label={`Groups of ${shape.label}`}
      columns={columns}
      rows={rows}
      rowId={rowId}
      narrowColumns={narrow}
      {...(sort === undefined ? {} : { sort })}
      onSort={(next) => onSort(next === undefined ? [] : [next])}
      onOpen={onPick}
    />
  );
}
