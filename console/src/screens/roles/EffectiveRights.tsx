import { useQuery } from "@tanstack/react-query";
import { ErrorNotice } from "../../components/ErrorState";
import { SkeletonRows } from "../../components/Skeleton";
import { rolesQuery } from "../users/users";
import { ReachWord, RightsMatrix } from "./RightsMatrix";
import { effectiveQuery, someReachOf } from "./roles";

/** The effective rights of a role. They include those of the role `public`, and grants for `*`. */
export function EffectiveRights({ role }: { role: string }) {
  const { data, error, refetch } = useQuery(effectiveQuery(role));
  // The grants of the roles show what limits an action.
  const roles = useQuery(rolesQuery);
  if (data === undefined || roles.isPending) return error === null ? <SkeletonRows rows={12} columns={6} /> : <ErrorNotice error={error} title="The rights could not be loaded" onRetry={() => void refetch()} />;
  const rows = new Map(data.map((row) => [row.resource, row]));
  const grants = roles.data?.filter(({ id, name }) => id === role || name === "public").flatMap(({ permissions }) => permissions) ?? [];
  return (
    <>
      <p className="dim">With what the role public grants to everybody, and with grants for everything. A user with several roles has all of their rights.</p>
      <RightsMatrix label="Effective rights" resources={[...rows.keys()]} cell={(resource, action) => {
          const reach = rows.get(resource)?.[action] ?? null;
          return <ReachWord resource={resource} reach={reach} some={reach === "condition" ? someReachOf(grants, resource, action) : null} />;
        }} />
    </>
  );
}
