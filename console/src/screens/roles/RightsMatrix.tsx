import type { ReactNode } from "react";
import type { Action } from "../../api/types";
import { ACTIONS, PLATFORM, type Reach, type SomeReach, WITHOUT_ROWS, rowWords } from "./roles";
import classes from "./Roles.module.css";

export interface RightsMatrixProps {
  /** The accessible name of the table, such as "Grants". */
  label: string;
  resources: string[];
  cell: (resource: string, action: Action) => ReactNode;
  /** Replace the name of an action and of a resource. */
  columnHead?: ((action: Action) => ReactNode) | undefined;
  rowHead?: ((resource: string) => ReactNode) | undefined;
  /** The content below the row of a resource. */
  below?: ((resource: string) => ReactNode) | undefined;
  /** Called for a press on a cell. */
  onPress?: ((resource: string, action: Action) => void) | undefined;
}

/** Rights as a table: a row for each resource, a column for each action. */
export function RightsMatrix({ label, resources, cell, columnHead, rowHead, below, onPress }: RightsMatrixProps) {
  return (
    <div className={classes.scroll} tabIndex={0} role="region" aria-label={label}>
      <table className={classes.grid}>
        <thead>
          <tr>
            <th scope="col">Resource</th>
            {ACTIONS.map((action) => (
              <th scope="col" key={action}>
                {columnHead?.(action) ?? action}
              </th>
            ))}
          </tr>
        </thead>
        {resources.map((resource) => {
          const more = below?.(resource);
          return (
            <tbody key={resource} data-editing={(more !== undefined && more !== null) || undefined}>
              <tr data-platform={resource in PLATFORM || undefined}>
                <th scope="row">
                  {rowHead?.(resource) ?? <bdi className="mono">{resource}</bdi>}
                  {PLATFORM[resource] !== undefined && <span className="dim">{PLATFORM[resource]}</span>}
                </th>
                {ACTIONS.map((action) => (
                  <td key={action} onClick={onPress === undefined ? undefined : () => onPress(resource, action)}>
                    {cell(resource, action)}
                  </td>
                ))}
              </tr>
              {more !== undefined && more !== null && (
                <tr>
                  <td colSpan={ACTIONS.length + 1}>{more}</td>
                </tr>
              )}
            </tbody>
          );
        })}
      </table>
    </div>
  );
}

/**
 * Says in words for which rows the grants give an action. `implied` means that another grant includes it. `some` is the part that limited
 * grants add.
 */
export function ReachWord({ resource, reach, implied = false, some = null }: { resource: string; reach: Reach; implied?: boolean; some?: SomeReach | null }) {
  const limited = some === "all" ? null : some;
  // If this page does not know what limits the action, the text names both possibilities.
  if (reach === "condition") return <span data-reach="condition">{limited ?? "some rows or fields"}</span>;
  if (reach === null && limited !== null && !implied) return <span data-reach="condition">{limited}</span>;
  if (reach === null) return <span className="dim">{implied ? "included" : "–"}</span>;
  const words = rowWords(resource);
  if (words === undefined && reach === "own") return <span className="dim">{WITHOUT_ROWS}</span>;
  return (
    <span data-reach={reach}>
      {words?.[reach] ?? "yes"}
      {reach === "own" && limited !== null && `, ${limited}`}
    </span>
  );
}
