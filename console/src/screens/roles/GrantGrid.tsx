import { NativeSelect, TextInput } from "@mantine/core";
import { IconSearch } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useObjects } from "../../api/objects";
import type { Action, Grant } from "../../api/types";
import { ACTIONS, PLATFORM, type Reach, effectiveQuery, hasRows, reachOf, withReach } from "./roles";
import classes from "./Roles.module.css";

/** Rows that are drawn; with more objects, the search narrows them down. */
const ROWS_SHOWN = 100;

/** What a role grants: a row for each object and platform resource, a column for each action. */
export function GrantGrid({ role, grants, onChange, q, onSearch }: { role: string; grants: Grant[]; onChange: ((grants: Grant[]) => void) | undefined; q: string; onSearch: (q: string) => void }) {
  const objects = useObjects();
  // It lists what blocks declare too.
  const known = useQuery(effectiveQuery(role));
  const resources = useMemo(() => {
    const named = new Set(objects.data?.map(({ name }) => name));
    // Objects that this person may not know of are at least in the grants.
    for (const { resource } of [...(known.data ?? []), ...grants]) if (!(resource in PLATFORM)) named.add(resource);
    return [...[...named].sort(), ...Object.keys(PLATFORM)];
  }, [objects.data, known.data, grants]);
  const wanted = q.trim().toLowerCase();
  const shown = resources.filter((resource) => resource.toLowerCase().includes(wanted));
  const drawn = shown.slice(0, ROWS_SHOWN);
  const everything = (action: Action) => reachOf(grants, "*", action) === "all" || reachOf(grants, "*", "manage") === "all";
  return (
    <>
      <TextInput w={260} leftSection={<IconSearch size={14} />} aria-label="Find a resource" placeholder="Find an object or resource" value={q} onChange={({ currentTarget }) => onSearch(currentTarget.value)} />
      <div className={classes.scroll} tabIndex={0} role="region" aria-label="Grants">
        <table className={classes.grid}>
          <thead>
            <tr>
              <th scope="col">Resource</th>
              {ACTIONS.map((action) => (
                <th scope="col" key={action}>
                  {action}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {drawn.map((resource) => (
              <tr key={resource} data-platform={resource in PLATFORM || undefined}>
                <th scope="row">
                  <bdi className="mono">{resource}</bdi>
                  {PLATFORM[resource] !== undefined && <span className="dim">{PLATFORM[resource]}</span>}
                </th>
                {ACTIONS.map((action) => {
                  const reach = reachOf(grants, resource, action);
                  const implied = reach === null && (reachOf(grants, resource, "manage") === "all" || (resource !== "*" && everything(action)));
                  return (
                    <td key={action}>
                      <Cell label={`${action} on ${resource}`} reach={reach} implied={implied} rows={hasRows(resource)} onChange={onChange === undefined ? undefined : (next) => onChange(withReach(grants, resource, action, next))} />
                    </td>
                  );
                })}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {shown.length > drawn.length && <p className="dim">{(shown.length - drawn.length).toLocaleString("en")} more. Search to find them.</p>}
    </>
  );
}

const WORDS = { all: "all rows", own: "own rows" } as const;

function Cell({ label, reach, implied, rows, onChange }: { label: string; reach: Reach; implied: boolean; rows: boolean; onChange: ((reach: Reach) => void) | undefined }) {
  if (onChange === undefined) return reach === null ? <span className="dim">{implied ? "included" : "–"}</span> : <span>{rows ? WORDS[reach] : "yes"}</span>;
  return (
    <NativeSelect
      size="xs"
      aria-label={label}
      data-reach={reach ?? (implied ? "implied" : "none")}
      classNames={{ input: classes.cell! }}
      value={reach ?? ""}
      onChange={({ currentTarget: { value } }) => onChange(value === "" ? null : (value as Reach))}
      data={[
        { value: "", label: implied ? "included" : "–" },
        { value: "all", label: rows ? "all rows" : "yes" },
        ...(rows || reach === "own" ? [{ value: "own", label: "own rows" }] : []),
      ]}
    />
  );
}
