import { isLosslessNumber, printJson } from "../api/json";
import type { FieldType } from "../api/types";
import { Time } from "./Time";
import classes from "./Value.module.css";

const TEXT_SHOWN_MAX = 300;

/** One value of a record as one line of text. Null is a gray dash, an empty string is `""`, and a number has all its digits. */
export function Value({ value, type }: { value: unknown; type?: FieldType | undefined }) {
  if (value === null || value === undefined)
    return (
      <span className={classes.null} data-tip="null">
        –<span className="sr-only">null</span>
      </span>
    );
  if (value === "") return <span className={classes.empty}>""</span>;
  if (typeof value === "number" || isLosslessNumber(value)) return <span className={classes.number}>{String(value)}</span>;
  if (typeof value === "boolean") return <span className={classes.word}>{String(value)}</span>;
  if (typeof value === "string") {
    if (type === "datetime") return <Time at={value} />;
    const shown = value.length > TEXT_SHOWN_MAX ? `${value.slice(0, TEXT_SHOWN_MAX)}…` : value;
    return (
      <bdi className={type === "uuid" ? "mono" : undefined} data-tip={value.length > 24 ? value : undefined}>
        {type === "enum" ? <span className={classes.tag}>{shown}</span> : shown}
      </bdi>
    );
  }
  if (type === "multi_enum" && Array.isArray(value))
    return (
      <span>
        {value.map((each) => (
          <span key={String(each)} className={classes.tag}>
            {String(each)}
          </span>
        ))}
        {value.length === 0 && <span className={classes.empty}>[]</span>}
      </span>
    );
  const json = printJson(value);
  return <span className="mono">{json.length > TEXT_SHOWN_MAX ? `${json.slice(0, TEXT_SHOWN_MAX)}…` : json}</span>;
}
