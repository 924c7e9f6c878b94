import { Button } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { request } from "../../api/client";
import { ErrorNotice } from "../../components/ErrorState";
import { StatusBadge } from "../../components/StatusBadge";
import { Time } from "../../components/Time";
import { REASONS } from "../users/users";
import classes from "../users/Users.module.css";

/** Why something stopped, and the way to make it go on with one's own rights. */
export function Suspension({ suspended, adoptPath, onAdopted }: { suspended: { reason: string; since: string } | null; adoptPath: string | undefined; onAdopted: () => Promise<unknown> }) {
  const adopt = useMutation({ mutationFn: () => request("POST", adoptPath!), onSuccess: onAdopted });
  if (suspended === null) return null;
  return (
    <div className={classes.handOver} role="note">
      <StatusBadge tone="warn">suspended</StatusBadge>
      <span>
        {REASONS[suspended.reason] ?? suspended.reason} Since <Time at={suspended.since} />.
      </span>
      {adopt.error !== null && <ErrorNotice error={adopt.error} />}
      {adoptPath !== undefined && (
        <Button variant="default" size="compact-sm" loading={adopt.isPending} onClick={() => adopt.mutate()}>
          Adopt with my rights
        </Button>
      )}
    </div>
  );
}
