import { Button, Select } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import type { ApiError } from "../../api/errors";
import { Ticked } from "../../components/Ticked";
import type { User } from "../../api/types";
import { usersQuery } from "./users";
import classes from "../../components/Details.module.css";

/** Shown before the deletion of a user who made keys, webhooks, tasks or blocks. Another user takes these over, or they are suspended. */
export function HandOver({ error, user, isPending, onChoose }: { error: ApiError; user: User; isPending: boolean; onChoose: (query: { handOverTo?: string; suspend?: boolean }) => void }) {
  const [to, setTo] = useState<string | null>(null);
  const [typed, setTyped] = useState("");
  const { data } = useQuery(usersQuery({ search: typed.trim() || undefined, page: 1 }));
  const others = data?.data.filter(({ id, isAnonymous, banned }) => id !== user.id && !isAnonymous && !banned) ?? [];
  return (
    <section className={classes.handOver} role="alert">
      <h3 className={classes.head}>They made things that would stop</h3>
      <p>
        <Ticked text={error.message} />
      </p>
      <div className={classes.give}>
        <Select aria-label="Who takes them over" placeholder="Choose a user" searchable searchValue={typed} onSearchChange={setTyped} data={others.map(({ id, name, email }) => ({ value: id, label: [name, email].filter(Boolean).join(" · ") }))} value={to} onChange={setTo} />
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
