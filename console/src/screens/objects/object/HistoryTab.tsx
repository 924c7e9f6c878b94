import { Button } from "@mantine/core";
import { useInfiniteQuery } from "@tanstack/react-query";
import { type JsonValue, printJson } from "../../../api/json";
import type { Migration } from "../../../api/types";
import { Actor } from "../../../components/Actor";
import { ErrorState } from "../../../components/ErrorState";
import { SkeletonLines } from "../../../components/Skeleton";
import { Time } from "../../../components/Time";
import { changeSentence, differences, objectHistoryQuery } from "../model/history";
import classes from "./Objects.module.css";

/** The changes of the object, each with its actor and time. */
export function HistoryTab({ object }: { object: string }) {
  const history = useInfiniteQuery(objectHistoryQuery(object));
  if (history.data === undefined)
    return <div className={classes.scroll}>{history.isError ? <ErrorState error={history.error} title="The history could not be loaded" onRetry={() => void history.refetch()} /> : <SkeletonLines lines={8} />}</div>;
  const entries = history.data.pages.flat();
  return (
    <div className={classes.scroll} tabIndex={0} role="region" aria-label={`Changes of ${object}`}>
      <div>
        {entries.length === 0 && <p className="dim">Nothing is recorded of this object.</p>}
        <ol aria-label={`History of ${object}`}>
          {entries.map((entry) => (
            <Entry key={entry.version} entry={entry} />
          ))}
        </ol>
        {history.hasNextPage && (
          <Button variant="default" mt="md" onClick={() => void history.fetchNextPage()} loading={history.isFetchingNextPage}>
            Show older changes
          </Button>
        )}
      </div>
    </div>
  );
}

function Entry({ entry: { version, change, appliedBy, appliedAt } }: { entry: Migration }) {
  const parts = differences(change);
  return (
    <li className={classes.entry}>
      <div className={classes.entryHead}>
        <span dir="auto">{changeSentence(change)}</span>
        <span className={classes.entryMeta}>
          <span>
            by <Actor id={appliedBy} />
          </span>
          <Time at={appliedAt} />
          <span className="nums" title="Version of the schema">
            v{version}
          </span>
        </span>
      </div>
      {parts.length > 0 && (
        <table className={classes.diff}>
          <tbody>
            {parts.map(({ key, before, after }) => (
              <tr key={key}>
                <th scope="row">{key}</th>
                <td dir="auto">
                  {before !== undefined && <del>{shown(before)}</del>}
                  {before !== undefined && after !== undefined && " → "}
                  {after !== undefined && <ins>{shown(after)}</ins>}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </li>
  );
}

const SHOWN_MAX = 3_000;

function shown(value: JsonValue): string {
  const text = typeof value === "string" ? value : printJson(value);
  return text.length > SHOWN_MAX ? `${text.slice(0, SHOWN_MAX)}…` : text;
}
