import { Button } from "@mantine/core";
import { IconRefresh } from "@tabler/icons-react";
import { keepPreviousData, useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api } from "../../api/client";
import { useCan } from "../../api/session";
import type { Delivery } from "../../api/types";
import { CodeBlock } from "../../components/CodeBlock";
import { ErrorNotice } from "../../components/ErrorState";
import { FactList } from "../../components/FactList";
import { Id } from "../../components/Id";
import { Inspector, type PaneActions } from "../../components/Inspector";
import { StatusBadge } from "../../components/StatusBadge";
import { Time } from "../../components/Time";
import { webhookOf } from "./consumers";
import { DeliveryStatus, deliveryQuery, stateOf, useConsumerName } from "./deliveries";
import details from "../../components/Details.module.css";
import own from "./Deliveries.module.css";

/** One delivery: its state, the receiver's response, and a button to send it again. */
export function DeliveryInspector({ delivery, ...pane }: { delivery: Delivery } & PaneActions) {
  const cache = useQueryClient();
  const canRetry = useCan("events", "update");
  const { eventId, consumer, topic, handler, attempts, error, nextAttemptAt, deliveredAt, occurredAt } = delivery;
  const state = stateOf(delivery);
  const retry = useMutation({
    mutationFn: () => api.POST("/api/v1/events/deliveries/retry", { body: { eventId, consumer } }),
    onSettled: () => cache.invalidateQueries({ queryKey: ["deliveries"] }),
  });
  const webhook = webhookOf(consumer);
  const name = useConsumerName()(consumer);
  const history = useQuery({ ...deliveryQuery(delivery), placeholderData: keepPreviousData });
  return (
    <Inspector
      title={topic}
      {...pane}
      footer={
        <>
          {canRetry && (state === "failed" || state === "dead") && (
            <Button leftSection={<IconRefresh size={14} />} loading={retry.isPending} onClick={() => retry.mutate()}>
              Retry delivery
            </Button>
          )}
          <Button variant="default" renderRoot={(props) => <Link to="/events" search={{ open: eventId }} {...props} />}>
            Open event
          </Button>
        </>
      }
    >
      <div className={details.body}>
        {retry.error !== null && <ErrorNotice error={retry.error} title="The delivery could not be retried" />}
        <FactList
          facts={{
            State: <DeliveryStatus delivery={delivery} />,
            Consumer: <bdi>{webhook === undefined ? <span title={consumer}>{name}</span> : <Link to="/webhooks" search={{ open: webhook }}>{name}</Link>}</bdi>,
            Handler: <bdi>{handler}</bdi>,
            Event: <Id id={eventId} />,
            Happened: <Time at={occurredAt} exact />,
            Attempts: attempts,
            Delivered: deliveredAt !== null && <Time at={deliveredAt} exact />,
            "Next attempt": nextAttemptAt !== null && state !== "delivered" && <Time at={nextAttemptAt} />,
          }}
        />
        {state === "delivered" && attempts === 0 && <p className="dim">It was settled without an attempt: the consumer no longer asks for this event, or its maker may not see it.</p>}
        {error !== null && (
          <section>
            <h3 className={details.head}>Error of the last attempt</h3>
            <CodeBlock code={error} label="Error" wrap />
          </section>
        )}
        {history.error !== null && <ErrorNotice error={history.error} title="The attempts could not be loaded" onRetry={() => void history.refetch()} />}
        {history.data !== undefined && history.data.history.length > 0 && (
          <section>
            <h3 className={details.head}>Attempts</h3>
            <ol className={own.attempts}>
              {history.data.history.map((attempt) => (
                <li key={attempt.number} value={attempt.number}>
                  <StatusBadge tone={attempt.status === "delivered" ? "ok" : "bad"} plain>
                    {attempt.status}
                  </StatusBadge>{" "}
                  <Time at={attempt.at} exact />
                  {attempt.durationMs !== null && <span className="dim"> in {attempt.durationMs.toLocaleString("en")} ms</span>}
                  {attempt.error !== null && <p className={own.attemptError} dir="auto">{attempt.error}</p>}
                </li>
              ))}
            </ol>
          </section>
        )}
      </div>
    </Inspector>
  );
}
