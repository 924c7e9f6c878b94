/** Lists the grants of a role that have conditions or lists of fields, and describes each in words. */
import { ActionIcon, Button } from "@mantine/core";
import { IconPencil, IconPlus, IconTrash } from "@tabler/icons-react";
import { useRef, useState } from "react";
import type { Grant } from "../../../api/types";
import { later } from "../../../components/later";
import { type Refusal, isLimited, refusalIn } from "../roles";
import { GrantInWords } from "./GrantInWords";
import { useNames } from "./useNames";
import classes from "./Conditions.module.css";

const GrantEditor = later(() => import("./GrantEditor").then((loaded) => loaded.GrantEditor));

export interface ConditionsProps {
  grants: Grant[];
  /** Absent if this person may not change the role. */
  onChange: ((grants: Grant[]) => void) | undefined;
  /** The part of a grant that the server refused when the role was saved. */
  refusal: Refusal | undefined;
}

export function Conditions({ grants, onChange, refusal }: ConditionsProps) {
  /** The index of the edited grant. -1 for a new one. */
  const [edited, setEdited] = useState<number | null>(null);
  const names = useNames(grants);
  const add = useRef<HTMLButtonElement>(null);
  const shown = grants.flatMap((grant, index) => (isLimited(grant) ? [{ grant, index }] : []));
  const before = edited === null ? undefined : grants[edited];
  if (onChange === undefined && shown.length === 0) return null;
  return (
    <section className={classes.section} aria-labelledby="conditions">
      <div className={classes.head}>
        <h2 id="conditions" tabIndex={-1}>Grants with conditions or fields</h2>
        {onChange !== undefined && (
          <Button ref={add} variant="default" leftSection={<IconPlus size={14} />} onPointerEnter={() => void GrantEditor.preload().catch(() => {})} onClick={() => setEdited(-1)}>
            Add grant with conditions or fields
          </Button>
        )}
      </div>
      <p className="dim">These grants reach only the records that meet a condition, or only some of the fields. They add to what the table gives, so a wider grant there makes them pointless.</p>
      {shown.length > 0 && (
        <ul className={classes.list} aria-label="Grants with conditions or fields">
          {shown.map(({ grant, index }) => (
            // Two grants may be equal, so the index is the key.
            <li key={index}>
              <GrantInWords
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
                          // The button disappears with its grant, so the focus moves.
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
          known={names.known}
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
