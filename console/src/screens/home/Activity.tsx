import { useQuery } from "@tanstack/react-query";
import { isApiError } from "../../api/errors";
import { statusQuery } from "../../api/status";
import { Chart } from "../../components/Chart";
import { ErrorNotice } from "../../components/ErrorState";
import { Bone, Late } from "../../components/Skeleton";
import classes from "./Home.module.css";

const HEIGHT = 120;
const sum = (numbers: number[]) => numbers.reduce((total, each) => total + each, 0);

/** The requests, errors and writes of the last hour on this instance. */
export function Activity() {
  const { data: status, error, refetch } = useQuery(statusQuery);
  if (status === undefined) {
    if (error !== null && isApiError(error) && error.status === 404) return null;
    if (error !== null) return <ErrorNotice error={error} title="The activity could not be loaded" onRetry={() => void refetch()} />;
    return (
      <div className={classes.activity}>
        {[0, 1].map((each) => (
          <div key={each} className={classes.card}>
            <div className={classes.chartSpace}>
              <Late>
                <Bone width={140} height={14} />
              </Late>
            </div>
          </div>
        ))}
      </div>
    );
  }
  const { activity, instances } = status;
  const from = Math.floor(new Date(activity.from).getTime() / 1_000);
  const times = activity.requests.map((_, index) => from + index * activity.stepSeconds);
  const [requests, errors, writes] = [sum(activity.requests), sum(activity.errors), sum(activity.writes)];
  return (
    <section aria-label="The last hour">
      <div className={classes.activity}>
        <figure className={classes.card}>
          <figcaption className={classes.figure}>
            <span className={classes.number}>{requests.toLocaleString("en")}</span> {requests === 1 ? "request" : "requests"}
            <span className={classes.errors} data-some={errors > 0 || undefined}>
              {errors.toLocaleString("en")} {errors === 1 ? "error" : "errors"}
            </span>
          </figcaption>
          <Chart
            label={`Requests of the last hour by the minute: ${requests} in all, ${errors} of them answered by an error`}
            kind="bars"
            height={HEIGHT}
            times={times}
            series={[
              { label: "requests", values: activity.requests, tone: "accent" },
              { label: "errors", values: activity.errors, tone: "bad" },
            ]}
          />
        </figure>
        <figure className={classes.card}>
          <figcaption className={classes.figure}>
            <span className={classes.number}>{writes.toLocaleString("en")}</span> {writes === 1 ? "write" : "writes"}
            <span className={classes.push}>last hour{instances.length > 1 ? ", this instance" : ""}</span>
          </figcaption>
          <Chart label={`Writes of the last hour by the minute: ${writes} in all`} kind="bars" height={HEIGHT} times={times} series={[{ label: "writes", values: activity.writes, tone: "ok" }]} />
        </figure>
      </div>
    </section>
  );
}
