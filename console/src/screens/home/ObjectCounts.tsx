import { Button, TextInput } from "@mantine/core";
import { useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useRef, useState } from "react";
import { useAfterAnswers } from "../../api/after-answers";
import { recordCountQuery, useRecordCount } from "../../api/counts";
import { useLive } from "../../api/live";
import type { KnownObject } from "../../api/objects";
import classes from "./Home.module.css";

const SHOWN_AT_FIRST = 12;
const AGAIN_AFTER_MS = 1_500;

/** All objects with their numbers of records, which follow live changes. */
export function ObjectCounts({ objects }: { objects: KnownObject[] }) {
  const cache = useQueryClient();
  const [query, setQuery] = useState("");
  const [all, setAll] = useState(false);
  const waiting = useRef(new Set<string>());
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  const afterAnswers = useAfterAnswers([["data"]]);
  // Many writes in a short time lead to only one request for each object.
  useLive(["data.*.created", "data.*.deleted"], (events) => {
    for (const { payload } of events) if (typeof payload.object === "string") waiting.current.add(payload.object);
    timer.current ??= setTimeout(() => {
      timer.current = undefined;
      afterAnswers(() => {
        for (const name of waiting.current) void cache.invalidateQueries({ queryKey: recordCountQuery(name).queryKey });
        waiting.current.clear();
      });
    }, AGAIN_AFTER_MS);
  });
  const wanted = query.trim().toLowerCase();
  const matching = objects.filter(({ name, label }) => name.includes(wanted) || (label ?? "").toLowerCase().includes(wanted));
  const shown = all ? matching : matching.slice(0, SHOWN_AT_FIRST);
  return (
    <section className={classes.card} aria-label="Objects">
      <div className={classes.headRow}>
        <h2 className={classes.head}>
          Objects <span className="dim nums">{objects.length.toLocaleString("en")}</span>
        </h2>
        {objects.length > SHOWN_AT_FIRST && <TextInput aria-label="Find an object by name" placeholder="Find" value={query} onChange={(event) => setQuery(event.currentTarget.value)} w={160} />}
      </div>
      <ul className={classes.objects}>
        {shown.map((object) => (
          <ObjectLine key={object.name} object={object} />
        ))}
        {matching.length === 0 && <li className="dim">No object is named so.</li>}
      </ul>
      {!all && matching.length > shown.length && (
        <Button variant="subtle" size="compact-sm" onClick={() => setAll(true)}>
          Show all {matching.length.toLocaleString("en")}
        </Button>
      )}
    </section>
  );
}

function ObjectLine({ object: { name, label } }: { object: KnownObject }) {
  const records = useRecordCount(name);
  return (
    <li>
      <Link to="/data/$object" params={{ object: name }} className={classes.objectLink}>
        <code>{name}</code>
        {label !== undefined && label.toLowerCase().replaceAll(" ", "_") !== name && (
          <span className="ellipsis dim" dir="auto">
            {label}
          </span>
        )}
        <span className={classes.count}>{records === undefined ? "" : records === null ? "–" : records.toLocaleString("en")}</span>
      </Link>
    </li>
  );
}
