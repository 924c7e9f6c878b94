import { Button } from "@mantine/core";
import { useState } from "react";
import type { ApiError } from "../../api/errors";
import { Ticked } from "../../components/Ticked";
import type { SeenUser } from "../../api/types";
import { UserSelect } from "./UserSelect";
import classes from "../../components/Details.module.css";

/** Shown before the deletion of a user who made keys, webhooks, tasks or blocks. Another user takes these over, or they are suspended. */
export function HandOver({ error, user, isPending, onChoose }: { error: ApiError; user: SeenUser; isPending: boolean; onChoose: (query: { handOverTo?: string; suspend?: boolean }) => void }) {
  const [to, setTo] = useState<string | null>(null);
  return (
    <section className={classes.handOver} role="alert">
      <h3 className={classes.head}>They made things that would stop</h3>
      <p>
        <Ticked text={error.message} />
      </p>
      <div className={classes.give}>
        <UserSelect aria-label="Who takes them over" placeholder="Choose a user" value={to} without={user.id} onChange={setTo} />
        <Button variant="default" disabled={to === null} loading={isPending} onClick={() => onChoose({ handOverTo: to! })}>
          Hand over and delete
        </Button>
      </div>
      <Button variant="subtle" color="red" size="compact-sm" loading={isPending} onClick={() => onChoose({ suspend: true })}>
        Suspend them and delete
      </Button>
    </section>
  );
}
