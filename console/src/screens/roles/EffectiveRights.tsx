import { useQuery } from "@tanstack/react-query";
import { ErrorNotice } from "../../components/ErrorState";
import { SkeletonRows } from "../../components/Skeleton";
import { ReachWord, RightsMatrix } from "./RightsMatrix";
import { effectiveQuery } from "./roles";

/** What somebody with this role may do after all, with what everybody may do and with grants for everything. */
export function EffectiveRights({ role }: { role: string }) {
  const { data, error, refetch } = useQuery(effectiveQuery(role));
  if (data === undefined) return error === null ? <SkeletonRows rows={12} columns={6} /> : <ErrorNotice error={error} title="The rights could not be loaded" onRetry={() => void refetch()} />;
  const rows = new Map(data.map((row) => [row.resource, row]));
  return (
    <>
      <p className="dim">With what the role public grants to everybody, and with grants for everything. A user with several roles has all of their rights.</p>
      <RightsMatrix label="Effective rights" resources={[...rows.keys()]} cell={(resource, action) => <ReachWord resource={resource} reach={rows.get(resource)?.[action] ?? null} />} />
    </>
  );
}
