import { Button } from "@mantine/core";
import { useQuery } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { api, dataOf } from "../../api/client";
import { actorOf, changesOf } from "../../api/events";
import { every } from "../../api/poll";
import type { LiveEvent } from "../../api/types";
import { Actor } from "../../components/Actor";
import { Changes } from "../../components/Changes";
import { FactList } from "../../components/FactList";
import { Id } from "../../components/Id";
import { Inspector, type PaneActions } from "../../components/Inspector";
import { JsonView } from "../../components/JsonView";
import { StatusBadge } from "../../components/StatusBadge";
import { Time } from "../../components/Time";
import { PartNotLoaded } from "../../components/PartNotLoaded";
import { DeliveryStatus, stateOf, useConsumerName } from "../deliveries/deliveries";
import { eventQuery, recordOf } from "./events";
import details from "../../components/Details.module.css";
import classes from "./Events.module.css";

/** One event: its payload, the changes, and its deliveries. */
export function EventInspector({ id, known, ...pane }: { id: string; known?: LiveEvent | undefined } & PaneActions) {
  const query = useQuery({ ...eventQuery(id), ...(known === undefined ? {} : { initialData: known }) });
  const event = query.data;
  const record = event === undefined ? undefined : recordOf(event);
  return (
    <Inspector
      title={event?.topic ?? "Event"}
      {...pane}
      footer={
        record !== undefined && (
          <>
            <Button variant="default" renderRoot={(props) => <Link to="/data/$object/$id" params={record} {...props} />}>
              Open record
            </Button>
            <Button variant="subtle" renderRoot={(props) => <Link to="/events" search={{ object: record.object, record: record.id }} {...props} />}>
              Its events
            </Button>
          </>
        )
      }
    >
      {event === undefined ? (
        <PartNotLoaded query={query} what="The event" />
      ) : (
        <div className={details.body}>
          <FactList facts={{ Event: <Id id={event.id} />, When: <Time at={event.occurredAt} exact />, By: <Actor id={actorOf(event)} /> }} />
          {changesOf(event.payload).length > 0 && (
            <section>
              <h3 className={details.head}>Changes</h3>
              <Changes changes={changesOf(event.payload)} />
            </section>
          )}
          <section>
            <h3 className={details.head}>Deliveries</h3>
            <EventDeliveries id={id} />
          </section>
          <section>
            <h3 className={details.head}>Payload</h3>
            <JsonView value={event.payload} label="Payload" />
          </section>
        </div>
      )}
    </Inspector>
  );
}

function EventDeliveries({ id }: { id: string }) {
  const query = useQuery({
    queryKey: ["deliveries", "of", id],
    queryFn: ({ signal }) => dataOf(api.GET("/api/v1/events/deliveries", { params: { query: { eventId: id, limit: 100 } }, signal })),
    // No event reports a change of a delivery, so the list is polled.
    refetchInterval: (now) => every(now.state.data?.some((each) => stateOf(each) === "pending") === true ? 2_000 : 15_000)(now),
  });
  const nameOf = useConsumerName();
  const { data } = query;
  if (data === undefined) return <PartNotLoaded query={query} what="The deliveries" lines={2} />;
  if (data.length === 0) return <p className="dim">No consumer subscribed to this topic.</p>;
  return (
    <ul className={classes.deliveries}>
      {data.map((delivery) => (
        <li key={delivery.consumer}>
          <Link to="/deliveries" search={{ event: id, open: `${id}/${delivery.consumer}` }} dir="auto">
            {nameOf(delivery.consumer)}
          </Link>
          <DeliveryStatus delivery={delivery} />
          {delivery.attempts > 1 && <StatusBadge tone="off" plain>{delivery.attempts} attempts</StatusBadge>}
        </li>
      ))}
    </ul>
  );
}
