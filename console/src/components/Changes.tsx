import { UnstyledButton } from "@mantine/core";
import { type Change as Piece, diffLines, diffWordsWithSpace } from "diff";
import { Fragment, useMemo, useState } from "react";
import { isLosslessNumber, printJson } from "../api/json";
import type { FieldType } from "../api/types";
import { Value } from "./Value";
import classes from "./Changes.module.css";

export interface FieldChange {
  field: string;
  label?: string | undefined;
  type?: FieldType | undefined;
  /** `undefined` if there was no value before, as on a new record. */
  before: unknown;
  after: unknown;
}

/** A longer text is shown as before and after, because comparing its words would take too long. */
const COMPARED_MAX = 20_000;
const SHOWN_MAX = 1_200;
/** For shorter texts, before and after side by side are easier to read than marked words. */
const WORDS_MIN = 24;

const isStructured = (value: unknown) => typeof value === "object" && value !== null && !isLosslessNumber(value);

/** The changed fields, one per line. Removed text is struck through, and the new text stands beside it. */
export function Changes({ changes, label = "Changes" }: { changes: FieldChange[]; label?: string }) {
  return (
    <dl className={classes.changes} aria-label={label}>
      {changes.map((change) => (
        <div className={classes.change} key={change.field}>
          <dt className={classes.field} dir="auto">
            {change.label ?? change.field}
          </dt>
          <dd>
            <OneChange {...change} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

function OneChange({ before, after, type }: FieldChange) {
  const pieces = useMemo(() => compared(before, after), [before, after]);
  const [isWhole, setWhole] = useState(false);
  if (pieces !== undefined) {
    const length = pieces.reduce((sum, { value }) => sum + value.length, 0);
    const shown = isWhole ? pieces : cut(pieces, SHOWN_MAX);
    return (
      <bdi className={isStructured(after) || isStructured(before) ? classes.json : undefined}>
        {shown.map(({ value, added, removed }, index) => {
          if (added) return <ins key={index} className={classes.after}>{value}</ins>;
          if (removed) return <del key={index} className={classes.before}>{value}</del>;
          return <span key={index} className={classes.same}>{value}</span>;
        })}
        {!isWhole && length > SHOWN_MAX && (
          <Fragment>
            …{" "}
            <UnstyledButton className={classes.more} onClick={() => setWhole(true)}>
              {length - SHOWN_MAX} more characters
            </UnstyledButton>
          </Fragment>
        )}
      </bdi>
    );
  }
  return (
    <>
      {before !== undefined && (
        <>
          <del className={classes.before}>
            <Value value={before} type={plain(type)} />
          </del>
          <span className={classes.arrow} aria-label="to">
            →
          </span>
        </>
      )}
      <ins className={classes.after}>
        <Value value={after} type={plain(type)} />
      </ins>
    </>
  );
}

/** A comparison shows exact values. A relative time would hide the change. */
const plain = (type: FieldType | undefined) => (type === "datetime" || type === "enum" || type === "multi_enum" ? undefined : type);

/** The first `length` characters of a comparison. */
function cut(pieces: Piece[], length: number): Piece[] {
  const kept: Piece[] = [];
  let used = 0;
  for (const piece of pieces) {
    if (used >= length) break;
    kept.push({ ...piece, value: piece.value.slice(0, length - used) });
    used += piece.value.length;
  }
  return kept;
}

function compared(before: unknown, after: unknown): Piece[] | undefined {
  if (isStructured(before) && isStructured(after)) {
    const [one, other] = [printJson(before, 2), printJson(after, 2)];
    return one.length + other.length > COMPARED_MAX ? undefined : diffLines(one, other);
  }
  if (typeof before !== "string" || typeof after !== "string") return undefined;
  if (Math.max(before.length, after.length) < WORDS_MIN || before.length + after.length > COMPARED_MAX) return undefined;
  const pieces = diffWordsWithSpace(before, after);
  // If a text was mostly rewritten, before and after side by side are easier to read.
  const kept = pieces.reduce((sum, { value, added, removed }) => (added || removed ? sum : sum + value.trim().length), 0);
  return kept * 3 < Math.min(before.length, after.length) ? undefined : pieces;
}
