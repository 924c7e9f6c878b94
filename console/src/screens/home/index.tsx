import { Button, Stack } from "@mantine/core";
import { IconPlus } from "@tabler/icons-react";
import { Link } from "@tanstack/react-router";
import { useObjects } from "../../api/objects";
import { useCan, useMe, usePermissions } from "../../api/session";
import { CopyAs } from "../../components/CopyAs";
import { ErrorState } from "../../components/ErrorState";
import { Page } from "../../components/Page";
import { Activity } from "./Activity";
import { Attention } from "./Attention";
import { FirstSteps } from "./FirstSteps";
import { HomeSkeleton } from "./HomeSkeleton";
import { NewestEvents } from "./NewestEvents";
import { ObjectCounts } from "./ObjectCounts";
import { Start } from "./Start";
import classes from "./Home.module.css";

/** The home page: the state of the service, or the first steps. Each part is only shown to people who may see it. */
export function HomeScreen() {
  const objects = useObjects();
  const permissions = usePermissions();
  const me = useMe();
  const canCreate = useCan("objects", "create");
  const readsStatus = useCan("settings", "read");
  const readsEvents = useCan("events", "read");
  const isReady = objects.data !== undefined && permissions !== undefined;
  const isEmpty = objects.data?.length === 0;
  const actions = !isEmpty && isReady && (
    <>
      <CopyAs request={{ method: "GET", path: readsStatus ? "/api/v1/status" : "/api/v1/data" }} />
      {canCreate && (
        <Button renderRoot={(props) => <Link to="/objects/new" {...props} />} leftSection={<IconPlus size={14} />}>
          Create object
        </Button>
      )}
    </>
  );
  return (
    <Page title="Home" {...(actions === false ? {} : { actions })} padded>
      {!isReady ? (
        objects.error !== null && objects.error !== undefined ? (
          <ErrorState error={objects.error} title="The objects could not be loaded" onRetry={objects.refetch} />
        ) : (
          <HomeSkeleton />
        )
      ) : isEmpty ? (
        canCreate ? (
          <Start name={me?.user?.name} />
        ) : (
          <Nothing />
        )
      ) : (
        <div className={classes.home}>
          {canCreate && <FirstSteps objects={objects.data!} />}
          {readsStatus && <Activity />}
          <div className={classes.columns} data-one={!(readsStatus || readsEvents) || undefined}>
            <ObjectCounts objects={objects.data!} />
            {(readsStatus || readsEvents) && (
              <Stack gap="lg" miw={0}>
                <Attention />
                {readsEvents && <NewestEvents />}
              </Stack>
            )}
          </div>
        </div>
      )}
    </Page>
  );
}

function Nothing() {
  return (
    <section className={classes.nothing}>
      <h2>Nothing to see yet</h2>
      <p>
        You are signed in, but there is no object that you may read. Somebody who may update roles can give you a role with <code className="mono">read</code> on the objects that you need, on the Roles page.
      </p>
    </section>
  );
}
