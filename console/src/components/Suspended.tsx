import { Button } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import type { Suspension } from "../api/types";
import { ErrorNotice } from "./ErrorState";
import { StatusBadge } from "./StatusBadge";
import { Time } from "./Time";
import classes from "./Details.module.css";

/** The explanation for each reason of a suspension. */
const REASONS: Record<Suspension["reason"], string> = {
  rights_lost: "Its maker no longer has the rights that it needs.",
  maker_banned: "Its maker is banned.",
  maker_gone: "Its maker was deleted.",
  key_gone: "The API key that made it was deleted.",
  key_expired: "The API key that made it has expired.",
  key_suspended: "The API key that made it is suspended.",
};

/** Says why an item is suspended. A button makes it run again, with the rights of the person who adopts it. */
export function Suspended({ by, adopt, onAdopted }: { by: Suspension | null; adopt: (() => Promise<unknown>) | undefined; onAdopted: () => Promise<unknown> }) {
  const adopting = useMutation({ mutationFn: () => adopt!(), onSuccess: onAdopted });
  if (by === null) return null;
  return (
    <div className={classes.handOver} role="note">
      <StatusBadge tone="warn">suspended</StatusBadge>
      <span>
        {REASONS[by.reason]} Since <Time at={by.since} />.
      </span>
      {adopting.error !== null && <ErrorNotice error={adopting.error} />}
      {adopt !== undefined && (
        <Button variant="default" size="compact-sm" loading={adopting.isPending} onClick={() => adopting.mutate()}>
          Adopt with my rights
        </Button>
      )}
    </div>
  );
}
