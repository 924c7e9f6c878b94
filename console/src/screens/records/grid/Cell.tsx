/** A value in one line of the table. Hundreds of cells are visible at once, so each consists of few plain elements. */
import { memo } from "react";
import { amountText } from "../../../api/field-rules";
import { isLosslessNumber, printJson } from "../../../api/json";
import { shortId } from "../../../components/Id";
import { relativeTime } from "../../../components/Time";
import values from "../../../components/Value.module.css";
import type { RecordColumn } from "../columns";
import classes from "./Grid.module.css";

const SHOWN_MAX = 240;
const local = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const localExact = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });

const cut = (text: string) => (text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text);

/** Renders again only if the value or the name of the related record has changed. */
export const CellValue = memo(function CellValue({ value, column, title }: { value: unknown; column: RecordColumn; title?: string | undefined }) {
  if (value === null || value === undefined)
    return (
      <span className={values.null}>
        –<span className="sr-only">null</span>
      </span>
    );
  if (value === "") return <span className={values.empty}>""</span>;
  if (typeof value === "number" || isLosslessNumber(value)) return <span>{column.type === "currency" ? amountText(value, column.field) : String(value)}</span>;
  if (typeof value === "boolean") return <span className={values.word}>{String(value)}</span>;
  if (typeof value === "string") {
    if (column.relation !== undefined) return title === undefined ? <span className={classes.id}>{shortId(value)}</span> : <bdi className={classes.link}>{cut(title)}</bdi>;
    if (column.type === "datetime") {
      const at = new Date(value);
      if (Number.isNaN(at.getTime())) return <span>{value}</span>;
      return (
        <time dateTime={value} className={column.isSystem ? "dim" : undefined}>
          {column.isSystem ? relativeTime(at.getTime()) : local.format(at)}
        </time>
      );
    }
    if (column.type === "uuid" || column.id === "created_by" || column.id === "updated_by") return <span className={classes.id}>{shortId(value)}</span>;
    if (column.type === "enum") return <span className={values.tag}>{cut(value)}</span>;
    return <bdi>{cut(value)}</bdi>;
  }
  if (column.type === "multi_enum" && Array.isArray(value))
    return (
      <span>
        {value.length === 0 && <span className={values.empty}>[]</span>}
        {value.map((each) => (
          <span key={String(each)} className={values.tag}>
            {String(each)}
          </span>
        ))}
      </span>
    );
  return <span className={values.word}>{cut(printJson(value))}</span>;
});

/** The tooltip of a cell. It is empty if the cell shows everything. */
export function hintOf(value: unknown, column: RecordColumn, title?: string): string {
  if (value === null || value === undefined) return "null";
  if (typeof value === "string" && column.type === "datetime") {
    const at = new Date(value);
    return Number.isNaN(at.getTime()) ? value : `${localExact.format(at)}\n${value}`;
  }
  if (typeof value === "string") return title === undefined ? value.slice(0, 2_000) : `${title}\n${value}`;
  if (typeof value === "number" || isLosslessNumber(value) || typeof value === "boolean") return String(value);
  return printJson(value, 2).slice(0, 2_000);
}
