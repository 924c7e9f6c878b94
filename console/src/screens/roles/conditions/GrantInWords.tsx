import { IconAlertTriangle } from "@tabler/icons-react";
import type { ReactNode } from "react";
import { printJson } from "../../../api/json";
import type { Grant } from "../../../api/types";
import { Ticked } from "../../../components/Ticked";
import { Sentence } from "../../records/filters/Sentence";
import { type Word, wordsOf, wordsOfAll } from "../../records/filters/words";
import { fieldsInWords } from "../fields/fields";
import { type Refusal, WITHOUT_ROWS, rowWords } from "../roles";
import { type Names, partsOfClause } from "./useNames";
import classes from "./Conditions.module.css";

export interface GrantInWordsProps {
  grant: Grant;
  names: Names;
  /** The part of this grant that the server refused. */
  refusal?: Refusal | undefined;
  /** Buttons beside the name of the resource. */
  actions?: ReactNode;
}

const ownRows = (resource: string): Word => ({ text: rowWords(resource)?.own ?? WITHOUT_ROWS, as: "field" });

/** A grant in words: its resource and actions, and the rows and fields to which it applies. */
export function GrantInWords({ grant, names, refusal, actions }: GrantInWordsProps) {
  return (
    <>
      <div className={classes.grantHead}>
        <span>
          <bdi className="mono">{grant.resource}</bdi> <span className={classes.actions}>{grant.actions.join(", ")}</span>
        </span>
        <span className={classes.buttons}>{actions}</span>
      </div>
      <GrantFacts grant={grant} names={names} refusal={refusal} />
    </>
  );
}

/** The rows and fields to which a grant applies, as sentences. */
export function GrantFacts({ grant, names, refusal }: Omit<GrantInWordsProps, "actions">) {
  const { resource, where, check, rowPolicy, broken } = grant;
  const refused = (clause: Refusal["clause"]) =>
    refusal?.clause === clause && (
      <span className={classes.refused}>
        The server refuses this: <Ticked text={refusal.message} />
      </span>
    );
  const own = rowPolicy === "own" ? [ownRows(resource)] : [];
  const fields = fieldsInWords(grant.fields, grant.actions);
  return (
    <>
      {broken === true && (
        <p className={classes.broken}>
          <IconAlertTriangle size={15} aria-hidden="true" /> This grant names something that no longer exists, or tests a field that has another type now. It does not give all that it says.
        </p>
      )}
      <dl className={classes.facts}>
        <div>
          <dt>Rows</dt>
          <dd>
            <Said clause={where} resource={resource} own={own} names={names} isBroken={broken === true} nothing="all rows" />
            {refused("where")}
          </dd>
        </div>
        {(check ?? null) !== null && (
          <div>
            <dt>Writes leave</dt>
            <dd>
              <Said clause={check} resource={resource} own={[]} names={names} isBroken={broken === true} nothing="anything" />
              {refused("check")}
            </dd>
          </div>
        )}
        {(fields !== undefined || refusal?.clause === "fields") && (
          <div>
            <dt>Fields</dt>
            <dd>
              {fields === undefined ? <span className="dim">all fields</span> : <Ticked text={fields} />}
              {refused("fields")}
            </dd>
          </div>
        )}
      </dl>
    </>
  );
}

/** A condition in words. A broken condition is shown as JSON, because it does not fit the schema any more. */
export function Said({ clause, resource, own, names: { of, titleOf }, isBroken, nothing }: { clause: Grant["where"]; resource: string; own: Word[]; names: Names; isBroken: boolean; nothing: string }) {
  if ((clause ?? null) === null) return own.length > 0 ? <Sentence words={own} /> : <span className="dim">{nothing}</span>;
  const shape = of?.(resource);
  if (isBroken || of === undefined || shape === undefined)
    return (
      <>
        {own.length > 0 && <Sentence words={[...own, { text: "and", as: "join" }]} />} <code className={classes.raw}>{printJson(clause)}</code>
      </>
    );
  const parts = partsOfClause(clause, shape, of);
  const telling = { shape, of, titleOf, isWhole: true };
  const words = own.length > 0 ? [...own, ...parts.flatMap((part): Word[] => [{ text: "and", as: "join" }, ...wordsOf(part, telling)])] : wordsOfAll(parts, "and", telling);
  return words.length === 0 ? <span className="dim">{nothing}</span> : <Sentence words={words} />;
}
