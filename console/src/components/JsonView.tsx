import { UnstyledButton } from "@mantine/core";
import { IconChevronRight } from "@tabler/icons-react";
import { useState } from "react";
import { isJsonObject, isLosslessNumber, printJson } from "../api/json";
import { CopyButton } from "./Copy";
import classes from "./JsonView.module.css";

/** The number of members of one level that are shown at first. A button shows more. */
const MEMBERS_STEP = 100;
const TEXT_STEP = 400;

/**
 * JSON as a tree that can be folded. Numbers keep all digits, and nothing is rendered as HTML. `open` is the number of levels that are
 * unfolded at first.
 */
export function JsonView({ value, label = "JSON", open = 2 }: { value: unknown; label?: string; open?: number }) {
  return (
    <div className={classes.view}>
      <div className={classes.copy}>
        <CopyButton text={printJson(value, 2)} label={`Copy ${label}`} icon />
      </div>
      <div className={classes.tree} tabIndex={0} role="region" aria-label={label}>
        <Node value={value} open={open} />
      </div>
    </div>
  );
}

function Node({ name, value, open, last = true }: { name?: string; value: unknown; open: number; last?: boolean }) {
  const [unfolded, setUnfolded] = useState(open > 0);
  const [shown, setShown] = useState(MEMBERS_STEP);
  const isList = Array.isArray(value);
  const head = name === undefined ? null : <span className={classes.key}>{JSON.stringify(name)}: </span>;
  const comma = last ? "" : ",";
  if (!isList && !isJsonObject(value)) {
    return (
      <div className={classes.line}>
        {head}
        <Leaf value={value} />
        {comma}
      </div>
    );
  }
  const members: [string | undefined, unknown][] = isList ? value.map((each) => [undefined, each]) : Object.entries(value);
  const [begin, end] = isList ? ["[", "]"] : ["{", "}"];
  if (members.length === 0)
    return (
      <div className={classes.line}>
        {head}
        {begin + end + comma}
      </div>
    );
  return (
    <div>
      <div className={classes.line}>
        <UnstyledButton className={classes.fold} aria-expanded={unfolded} aria-label={`${name ?? "value"}: ${members.length} members`} onClick={() => setUnfolded(!unfolded)}>
          <IconChevronRight size={12} className={classes.chevron} data-open={unfolded || undefined} aria-hidden="true" />
        </UnstyledButton>
        {head}
        {begin}
        {!unfolded && (
          <span className={classes.more}>
            {" "}
            {members.length} {isList ? (members.length === 1 ? "item" : "items") : members.length === 1 ? "key" : "keys"} {end}
            {comma}
          </span>
        )}
      </div>
      {unfolded && (
        <>
          <div className={classes.inside}>
            {members.slice(0, shown).map(([key, each], index) => (
              <Node key={key ?? index} {...(key === undefined ? {} : { name: key })} value={each} open={open - 1} last={index === members.length - 1} />
            ))}
            {members.length > shown && (
              <UnstyledButton className={classes.showMore} onClick={() => setShown(shown + MEMBERS_STEP)}>
                Show {Math.min(MEMBERS_STEP, members.length - shown)} more of {members.length - shown}
              </UnstyledButton>
            )}
          </div>
          <div className={classes.line}>
            {end}
            {comma}
          </div>
        </>
      )}
    </div>
  );
}

function Leaf({ value }: { value: unknown }) {
  const [length, setLength] = useState(TEXT_STEP);
  if (typeof value === "string") {
    const text = JSON.stringify(value.slice(0, length));
    return (
      <>
        <bdi className={classes.string}>{value.length > length ? `${text.slice(0, -1)}…` : text}</bdi>
        {value.length > length && (
          <UnstyledButton className={classes.showMore} onClick={() => setLength(value.length)}>
            {" "}
            {value.length - length} more characters
          </UnstyledButton>
        )}
      </>
    );
  }
  if (typeof value === "number" || isLosslessNumber(value)) return <span className={classes.number}>{String(value)}</span>;
  return <span className={classes.word}>{value === undefined ? "null" : String(value)}</span>;
}
