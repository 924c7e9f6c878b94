import { Button, TextInput } from "@mantine/core";
import { useMutation } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { api, dataOf } from "../../api/client";
import type { Block } from "../../api/types";
import { CopyText } from "../../components/Copy";
import { ErrorNotice } from "../../components/ErrorState";
import { StatusBadge } from "../../components/StatusBadge";
import { Lines } from "./Lines";
import classes from "./Blocks.module.css";

/** Handlers of the server, to which a block may lead events. Only handlers of the block itself can be called again. */
const BUILT_IN = ["log_event", "persist_event"];

/** The events that the block gets and the addresses of its hooks. The person can send it a recorded event again. */
export function HandlersTab({ block, canReplay }: { block: Block; canReplay: boolean }) {
  const handlers = [...new Set(block.subscriptions.map(({ handler }) => handler))].filter((handler) => !BUILT_IN.includes(handler));
  return (
    <>
      {block.hooks.length > 0 && (
        <section>
          <h2>Hooks</h2>
          <p className="dim">Anybody who knows the address can call it. The block checks who it is.</p>
          <dl className={classes.declared}>
            {block.hooks.map(({ name, description }) => (
              <div key={name}>
                <dt className="mono">{name}</dt>
                <dd>
                  <CopyText text={`${location.origin}/api/v1/hooks/${block.name}/${name}`} label="Copy the address" />
                  <br />
                  <bdi className="dim">{description}</bdi>
                </dd>
              </div>
            ))}
          </dl>
        </section>
      )}
      {block.subscriptions.length > 0 && (
        <section>
          <h2>Event handlers</h2>
          <dl className={classes.declared}>
            {block.subscriptions.map(({ event, consumer, handler }) => (
              <div key={consumer}>
                <dt className="mono">{event}</dt>
                <dd>
                  by its handler <code className="mono">{handler}</code> ·{" "}
                  <Link to="/deliveries" search={{ consumer }}>
                    deliveries
                  </Link>
                </dd>
              </div>
            ))}
          </dl>
        </section>
      )}
      {canReplay && handlers.length > 0 && <Replay block={block} handlers={handlers} />}
    </>
  );
}

function Replay({ block, handlers }: { block: Block; handlers: string[] }) {
  const [handler] = handlers;
  const [eventId, setEventId] = useState("");
  const replay = useMutation({
    mutationFn: (handler: string) => dataOf(api.POST("/api/v1/blocks/{block}/handlers/{handler}/replay", { params: { path: { block: block.name, handler } }, body: { eventId: eventId.trim() } })),
  });
  return (
    <section className={classes.tab}>
      <h2>Replay an event</h2>
      <p className="dim">The handler gets a recorded event once more, with its own rights. It has real effects: it may write records and call other machines. The delivery ledger stays as it is.</p>
      <div className={classes.secret}>
        <TextInput label="Event id" classNames={{ input: "mono" }} value={eventId} spellCheck={false} onChange={({ currentTarget }) => setEventId(currentTarget.value)} description={<Link to="/events">Find one under Events</Link>} />
        {handlers.map((each) => (
          <Button key={each} variant="default" disabled={eventId.trim() === ""} loading={replay.isPending} onClick={() => replay.mutate(each)}>
            Replay{handlers.length > 1 || each !== handler ? ` to ${each}` : ""}
          </Button>
        ))}
      </div>
      {replay.error !== null && <ErrorNotice error={replay.error} title="The event was not replayed" />}
      {replay.data !== undefined && (
        <div aria-live="polite" className={classes.tab}>
          <p>
            <StatusBadge tone={replay.data.ok ? "ok" : "bad"}>{replay.data.ok ? "handled" : "failed"}</StatusBadge> in {replay.data.durationMs.toLocaleString("en")} ms
          </p>
          {replay.data.error !== null && <ErrorNotice error={new Error(replay.data.error.message)} title="The handler failed" />}
          {replay.data.logs !== null && replay.data.logs.length > 0 && <Lines lines={replay.data.logs} label="Log of the call" />}
        </div>
      )}
    </section>
  );
}
