import { Button, Group, NativeSelect, TextInput, UnstyledButton } from "@mantine/core";
import { upperFirst } from "@mantine/hooks";
import { IconChevronDown, IconSearch } from "@tabler/icons-react";
import { useQuery } from "@tanstack/react-query";
import { type ReactNode, useEffect, useMemo, useRef, useState } from "react";
import { quantity } from "../../api/numbers";
import { useObjects } from "../../api/objects";
import type { Action, Grant } from "../../api/types";
import { Menu } from "../../components/floating";
import { ReachWord, RightsMatrix } from "./RightsMatrix";
import { ACTIONS, PLATFORM, type PlainReach, type RowWords, WITHOUT_ROWS, effectiveQuery, givesSomething, reachOf, rowWords, someReachOf, withReach } from "./roles";
import classes from "./Roles.module.css";

/** The maximum number of rows. With more objects, the search finds the others. */
const ROWS_SHOWN = 100;
/**
 * The actions that the buttons "Read to delete" and "Own rows" grant. They do not grant `manage`, which may include more in a later
 * version.
 */
const ON_RECORDS: readonly Action[] = ["read", "create", "update", "delete"];

/** The grants of a role as a table. One resource is edited at a time. The head of a column changes all objects in the list. */
export function GrantGrid({ role, grants, onChange, q, onSearch, aside }: { role: string; grants: Grant[]; onChange: ((grants: Grant[]) => void) | undefined; q: string; onSearch: (q: string) => void; aside?: ReactNode }) {
  const [edited, setEdited] = useState<{ resource: string; action: Action } | null>(null);
  const objects = useObjects();
  // The effective rights also list the resources that blocks declare.
  const known = useQuery(effectiveQuery(role));
  const resources = useMemo(() => {
    const named = new Set(objects.data?.map(({ name }) => name));
    // Objects that this person may not see can still occur in the grants.
    for (const { resource } of [...(known.data ?? []), ...grants]) if (!(resource in PLATFORM)) named.add(resource);
    return [...[...named].sort(), ...Object.keys(PLATFORM)];
  }, [objects.data, known.data, grants]);
  const wanted = q.trim().toLowerCase();
  const shown = resources.filter((resource) => resource.toLowerCase().includes(wanted));
  const drawn = shown.slice(0, ROWS_SHOWN);
  const everything = (action: Action) => reachOf(grants, "*", action) === "all" || reachOf(grants, "*", "manage") === "all";
  const isImplied = (resource: string, action: Action) => reachOf(grants, resource, action) === null && (reachOf(grants, resource, "manage") === "all" || someReachOf(grants, resource, action) === "all" || (resource !== "*" && everything(action)));
  const set = (of: readonly string[], actions: readonly Action[], reach: PlainReach, from = grants) => onChange?.(of.reduce((all, resource) => actions.reduce((now, action) => withReach(now, resource, action, reach), all), from));
  // The head of a column changes the listed resources that have rows, but not the parts of the platform.
  const records = shown.filter((resource) => !(resource in PLATFORM) && rowWords(resource) !== undefined);
  const mayEdit = onChange !== undefined;
  const heads = useRef(new Map<string, HTMLButtonElement>());
  return (
    <>
      <Group gap="8px 16px">
        <TextInput w={260} leftSection={<IconSearch size={14} />} aria-label="Find a resource" placeholder="Find an object or resource" value={q} onChange={({ currentTarget }) => {
            // Closes the edited row. If the search hid it and showed it again, it would take the focus from the search.
            setEdited(null);
            onSearch(currentTarget.value);
          }} />
        {aside}
      </Group>
      <RightsMatrix
        label="Grants"
        resources={drawn}
        onPress={mayEdit ? (resource, action) => edited?.resource !== resource && setEdited({ resource, action: givesSomething(resource, action) ? action : "read" }) : undefined}
        columnHead={mayEdit ? (action) => <ColumnHead action={action} objects={records.length} onSet={(reach) => set(records, [action], reach)} /> : undefined}
        rowHead={
          mayEdit
            ? (resource) => (
                <UnstyledButton ref={(button) => void (button === null ? heads.current.delete(resource) : heads.current.set(resource, button))} className={classes.edit} aria-label={`Edit ${resource}`} aria-expanded={edited?.resource === resource} onClick={() => setEdited(edited?.resource === resource ? null : { resource, action: "read" })}>
                  <bdi className="mono">{resource}</bdi>
                </UnstyledButton>
              )
            : undefined
        }
        cell={(resource, action) => {
          const [reach, implied, some] = [reachOf(grants, resource, action), isImplied(resource, action), someReachOf(grants, resource, action)];
          // If the action has no effect on the resource, the person can only remove it.
          const isOffered = reach !== null || givesSomething(resource, action);
          if (!mayEdit || !isOffered || edited?.resource !== resource) return <ReachWord resource={resource} reach={reach} implied={implied} some={some} />;
          return <ReachSelect label={`${action} on ${resource}`} reach={reach} nothing={implied ? "included" : (some ?? "–")} words={rowWords(resource)} autoFocus={edited.action === action} onChange={(next) => set([resource], [action], next)} />;
        }}
        below={(resource) =>
          mayEdit &&
          edited?.resource === resource ? (
            <div className={classes.rowActions} role="group" aria-label={`All of ${resource}`}>
              {givesSomething(resource, "delete") && (
                <Button variant="default" size="compact-xs" onClick={() => set([resource], ON_RECORDS, "all")}>
                  Read to delete
                </Button>
              )}
              {rowWords(resource) !== undefined && (
                <Button variant="default" size="compact-xs" onClick={() => set([resource], ON_RECORDS, "own", withReach(grants, resource, "manage", null))}>
                  {upperFirst(rowWords(resource)!.own)}
                </Button>
              )}
              <Button variant="default" size="compact-xs" onClick={() => set([resource], ACTIONS, null)}>
                Nothing
              </Button>
              <Button
                size="compact-xs"
                onClick={() => {
                  setEdited(null);
                  // The button disappears with the row below, so the focus moves to the resource.
                  heads.current.get(resource)?.focus();
                }}
              >
                Done
              </Button>
            </div>
          ) : null
        }
      />
      {shown.length > drawn.length && <p className="dim">{(shown.length - drawn.length).toLocaleString("en")} more. Search to find them.</p>}
    </>
  );
}

/** Sets one action on all objects that the search finds. Nothing is sent before the person saves the role. */
function ColumnHead({ action, objects, onSet }: { action: Action; objects: number; onSet: (reach: PlainReach) => void }) {
  const of = quantity(objects, "object");
  return (
    <Menu>
      <Menu.Target>
        <UnstyledButton className={classes.edit} aria-label={`Edit ${action} on ${of}`}>
          {action} <IconChevronDown size={12} aria-hidden="true" />
        </UnstyledButton>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Label>
          {action} on {of}
        </Menu.Label>
        <Menu.Item disabled={objects === 0} onClick={() => onSet("all")}>
          All rows
        </Menu.Item>
        <Menu.Item disabled={objects === 0} onClick={() => onSet("own")}>
          Own rows
        </Menu.Item>
        <Menu.Item disabled={objects === 0} onClick={() => onSet(null)}>
          Nothing
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}

/**
 * A select for how far the grants give one action on one resource: nothing, own rows or all rows. `nothing` is the label of the first
 * option. It says which rights remain, from limited or other grants.
 */
function ReachSelect({ label, reach, nothing, words, autoFocus, onChange }: { label: string; reach: PlainReach; nothing: string; words: RowWords | undefined; autoFocus: boolean; onChange: (reach: PlainReach) => void }) {
  const place = useRef<HTMLSelectElement>(null);
  const first = useRef(autoFocus);
  // Takes the focus once, when the person opens this row.
  useEffect(() => {
    if (first.current) place.current?.focus();
  }, []);
  return (
    <NativeSelect
      ref={place}
      size="xs"
      aria-label={label}
      classNames={{ input: classes.cell! }}
      value={reach ?? ""}
      onChange={({ currentTarget: { value } }) => onChange(value === "" ? null : (value as PlainReach))}
      data={[
        { value: "", label: nothing },
        { value: "all", label: words?.all ?? "yes" },
        ...(words !== undefined || reach === "own" ? [{ value: "own", label: words?.own ?? WITHOUT_ROWS }] : []),
      ]}
    />
  );
}
