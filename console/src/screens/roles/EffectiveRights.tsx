import { useQuery } from "@tanstack/react-query";
import { ErrorNotice } from "../../components/ErrorState";
import { SkeletonRows } from "../../components/Skeleton";
import { ACTIONS, effectiveQuery, hasRows } from "./roles";
import classes from "./Roles.module.css";

/** What somebody with this role may do after all, with what everybody may do and with grants for everything. */
export function EffectiveRights({ role }: { role: string }) {
  const { data, error, refetch } = useQuery(effectiveQuery(role));
  if (data === undefined) return error === null ? <SkeletonRows rows={12} columns={6} /> : <ErrorNotice error={error} title="The rights could not be loaded" onRetry={() => void refetch()} />;
  return (
    <>
      <p className="dim">With what the role public grants to everybody, and with grants for everything. A user with several roles has all of their rights.</p>
      <div className={classes.scroll} tabIndex={0} role="region" aria-label="Effective rights">
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
            {data.map((row) => (
              <tr key={row.resource}>
                <th scope="row">
                  <bdi className="mono">{row.resource}</bdi>
                </th>
                {ACTIONS.map((action) => (
                  <td key={action}>{row[action] === null ? <span className="dim">–</span> : hasRows(row.resource) ? `${row[action]} rows` : "yes"}</td>
                ))}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </>
  );
}
