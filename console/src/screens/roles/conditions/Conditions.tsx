/** The grants of a role that have conditions: each with what its conditions say. */
import { ActionIcon, Button } from "@mantine/core";
import { IconAlertTriangle, IconPencil, IconPlus, IconTrash } from "@tabler/icons-react";
import { type ReactNode, useRef, useState } from "react";
import { printJson } from "../../../api/json";
import type { Grant } from "../../../api/types";
import { later } from "../../../components/later";
import { Ticked } from "../../../components/Ticked";
import { Sentence } from "../../records/filters/Sentence";
import { type Word, wordsOf, wordsOfAll } from "../../records/filters/words";
import { type Refusal, isConditional, refusalIn } from "../roles";
import { type Names, partsOfClause, useNames } from "./useNames";
import classes from "./Conditions.module.css";

const GrantEditor = later(() => import("./GrantEditor").then((loaded) => loaded.GrantEditor));

const OWN: Word = { text: "own rows", as: "field" };

export interface ConditionsProps {
  grants: Grant[];
  /** Absent for those who may not change the role. */
  onChange: ((grants: Grant[]) => void) | undefined;
  /** What the server refused when the role was saved. */
  refusal: Refusal | undefined;
}

export function Conditions({ grants, onChange, refusal }: ConditionsProps) {
  /** The place of the grant that is edited; -1 for a new one. */
  const [edited, setEdited] = useState<number | null>(null);
  const names = useNames(grants);
  const add = useRef<HTMLButtonElement>(null);
  const shown = grants.flatMap((grant, index) => (isConditional(grant) ? [{ grant, index }] : []));
  const before = edited === null ? undefined : grants[edited];
  if (onChange === undefined && shown.length === 0) return null;
  return (
    <section className={classes.section} aria-labelledby="conditions">
      <div className={classes.head}>
        <h2 id="conditions" tabIndex={-1}>Conditions</h2>
        {onChange !== undefined && (
          <Button ref={add} variant="default" leftSection={<IconPlus size={14} />} onPointerEnter={() => void GrantEditor.preload().catch(() => {})} onClick={() => setEdited(-1)}>
            Add grant with a condition
          </Button>
        )}
      </div>
      <p className="dim">These grants reach the records that meet a condition. They add to what the table gives, so a wider grant there makes them pointless.</p>
      {shown.length > 0 && (
        <ul className={classes.list} aria-label="Grants with conditions">
          {shown.map(({ grant, index }) => (
            // Grants may be alike, so their place is their identity.
            <li key={index}>
              <ConditionalGrant
                grant={grant}
                names={names}
                refusal={refusalIn(grant, refusal)}
                actions={
                  onChange !== undefined && (
                    <>
                      <ActionIcon aria-label={`Edit the grant on ${grant.resource}`} data-tip="Edit" onClick={() => setEdited(index)}>
                        <IconPencil size={15} />
                      </ActionIcon>
                      <ActionIcon
                        aria-label={`Remove the grant on ${grant.resource}`}
                        data-tip="Remove"
                        onClick={() => {
                          onChange(grants.toSpliced(index, 1));
                          // The button goes with its grant.
                          add.current?.focus();
                        }}
                      >
                        <IconTrash size={15} />
                      </ActionIcon>
                    </>
                  )
                }
              />
            </li>
          ))}
        </ul>
      )}
      {edited !== null && onChange !== undefined && names.of !== undefined && (
        <GrantEditor
          grant={before}
          of={names.of}
          titleOf={names.titleOf}
          refusal={before === undefined ? undefined : refusalIn(before, refusal)}
          onClose={() => setEdited(null)}
          onApply={(grant) => {
            onChange(before === undefined ? [...grants, grant] : grants.with(edited, grant));
            setEdited(null);
          }}
        />
      )}
    </section>
  );
}

function ConditionalGrant({ grant, names, refusal, actions }: { grant: Grant; names: Names; refusal: Refusal | undefined; actions: ReactNode }) {
  const { resource, where, check, rowPolicy, broken } = grant;
  const refused = (clause: Refusal["clause"]) =>
    refusal?.clause === clause && (
      <span className={classes.refused}>
        The server refuses this: <Ticked text={refusal.message} />
      </span>
    );
  const own = rowPolicy === "own" ? [OWN] : [];
  return (
    <>
      <div className={classes.grantHead}>
        <span>
          <bdi className="mono">{resource}</bdi> <span className={classes.actions}>{grant.actions.join(", ")}</span>
        </span>
        <span className={classes.buttons}>{actions}</span>
      </div>
      {broken === true && (
        <p className={classes.broken}>
          <IconAlertTriangle size={15} aria-hidden="true" /> This condition names something that no longer exists. The grant gives nothing.
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
      </dl>
    </>
  );
}

/** What a condition says. One that is broken stands there as the server keeps it: there are no names for what is gone. */
function Said({ clause, resource, own, names: { of, titleOf }, isBroken, nothing }: { clause: Grant["where"]; resource: string; own: Word[]; names: Names; isBroken: boolean; nothing: string }) {
  if ((clause ?? null) === null) return own.length > 0 ? <Sentence words={own} /> : <span className="dim">{nothing}</span>;
  const shape = of?.(resource);
  if (isBroken || of === undefined || shape === undefined)
    return (
      <>
        {own.length > 0 && <Sentence words={[...own, { text: "and", as: "join" }]} />} <code className={classes.raw}>{printJson(clause)}</code>
      </>
    );
  const parts = partsOfClause(clause, shape, of);
  const telling = { shape, of, titleOf };
  const words = own.length > 0 ? [...own, ...parts.flatMap((part): Word[] => [{ text: "and", as: "join" }, ...wordsOf(part, telling)])] : wordsOfAll(parts, "and", telling);
  return words.length === 0 ? <span className="dim">{nothing}</span> : <Sentence words={words} />;
}
