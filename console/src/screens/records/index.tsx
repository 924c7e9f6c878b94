import { Button } from "@mantine/core";
import { Link, useParams } from "@tanstack/react-router";
import { Suspense, lazy, useState } from "react";
import { EmptyState } from "../../components/EmptyState";
import { ErrorState } from "../../components/ErrorState";
import { Page } from "../../components/Page";
import { SkeletonRows } from "../../components/Skeleton";
import { RecordsTable, type RecordsTableProps } from "./RecordsTable";
import { useShape } from "./useShape";
import { useCurrentView } from "./views/useCurrentView";
import { useViews } from "./views/useViews";
import type { Unread } from "./views/view";

const GroupsScreen = lazy(async () => ({ default: (await import("./groups/GroupsScreen")).GroupsScreen }));

export function RecordsScreen() {
  const { object } = useParams({ from: "/data/$object" });
  // With another key, React mounts a new table for another object and keeps no state of the old one.
  return <ObjectRecords key={object} object={object} />;
}

function ObjectRecords({ object }: { object: string }) {
  const shape = useShape(object);
  const views = useViews(object);
  const [wasThere, setWasThere] = useState(false);
  if (shape.state === "ready" && !wasThere) setWasThere(true);
  if (shape.state === "error")
    return (
      <Page title={object}>
        <ErrorState error={shape.error} title="The object could not be loaded" onRetry={shape.retry} />
      </Page>
    );
  if (shape.state === "missing")
    return (
      <Page title={object}>
        <EmptyState title={wasThere ? `The object ${object} is gone` : `There is no object ${object}`} action={<Button component={Link} to="/objects">Show the objects</Button>}>
          {wasThere ? "Somebody deleted or renamed it a moment ago, and its records went along." : "It may have another name, or you may not be allowed to see it."}
        </EmptyState>
      </Page>
    );
  // The saved views decide what the first request contains, so they are loaded before the rows.
  if (shape.state === "loading" || views.isPending)
    return (
      <Page title={object}>
        <SkeletonRows rows={16} columns={6} />
      </Page>
    );
  return <RecordsOrGroups shape={shape.shape} shapeOfOther={shape.shapeOfOther} tableShapeOf={shape.tableShapeOf} views={views} />;
}

const UNREAD: Record<Unread, string> = {
  long: "It is too long. Remove it, and filter by fewer values or conditions.",
  damaged: "A part of it is missing or wrong, or another version of the console wrote it. Open the whole address again, or remove the filter.",
  saved: "A part of it is wrong, or another version of the console or another program wrote it. Remove the filter, and build it again.",
};

/** The records of the view in the address, or their groups. */
function RecordsOrGroups(props: Omit<RecordsTableProps, "current">) {
  const current = useCurrentView(props.views);
  const { groups } = current.view;
  if (current.unread !== undefined)
    return (
      <Page title={props.shape.label}>
        <EmptyState title={current.unread === "saved" ? "The filter of this view cannot be read" : "The filter of this address cannot be read"} action={<Button onClick={current.removeFilter}>Remove the filter</Button>}>
          {UNREAD[current.unread]}
        </EmptyState>
      </Page>
    );
  if (groups === null) return <RecordsTable {...props} current={current} />;
  return (
    <Suspense
      fallback={
        <Page title={props.shape.label}>
          <SkeletonRows rows={16} columns={3} />
        </Page>
      }
    >
      <GroupsScreen {...props} current={current} grouping={groups} />
    </Suspense>
  );
}
