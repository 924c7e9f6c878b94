import { useQuery } from "@tanstack/react-query";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";
import { ErrorState } from "../../components/ErrorState";
import { Find } from "../../components/Find";
import { SkeletonRows } from "../../components/Skeleton";
import { type Operation, describedQuery } from "./document";
import { OperationView } from "./OperationView";
import classes from "./Api.module.css";

/** The maximum number of operations in the list. The search finds the others. */
const SHOWN_MAX = 300;

/** Every operation of the live OpenAPI document, with a form to try it. */
export function Reference() {
  const { operation: wanted, q = "" } = useSearch({ from: "/api" });
  const navigate = useNavigate({ from: "/api" });
  const { data, error, refetch } = useQuery(describedQuery);
  const groups = useMemo(() => {
    const needle = q.trim().toLowerCase();
    const matching = data?.operations.filter(({ id, summary, tag }) => [id, summary, tag].some((text) => text.toLowerCase().includes(needle))) ?? [];
    const by = new Map<string, Operation[]>();
    for (const operation of matching.slice(0, SHOWN_MAX)) by.set(operation.tag, [...(by.get(operation.tag) ?? []), operation]);
    return { all: matching.length, by };
  }, [data, q]);
  if (data === undefined) return error === null ? <SkeletonRows rows={16} columns={2} /> : <ErrorState error={error} title="The document could not be loaded" onRetry={() => void refetch()} />;
  const shown = data.operations.find(({ id }) => id === wanted);
  return (
    <div className={classes.reference} data-open={shown !== undefined || undefined}>
      <nav className={classes.operations} aria-label="Operations">
        <Find label="Find an operation" value={q} onFind={(text) => void navigate({ search: (before) => ({ ...before, q: text }), replace: true })} />
        {[...groups.by].map(([tag, operations]) => (
          <section key={tag}>
            <h2>{tag}</h2>
            <ul>
              {operations.map(({ id, method, path, summary }) => (
                <li key={id}>
                  <Link to="/api" search={q === "" ? { operation: id } : { operation: id, q }} aria-current={id === wanted ? "true" : undefined} title={summary}>
                    <span className={classes.method} data-method={method}>
                      {method}
                    </span>
                    <span className="mono">{path}</span>
                  </Link>
                </li>
              ))}
            </ul>
          </section>
        ))}
        {groups.all === 0 && <p className="dim">No operation matches “{q}”.</p>}
        {groups.all > SHOWN_MAX && <p className="dim">{(groups.all - SHOWN_MAX).toLocaleString("en")} more. Search to find them.</p>}
      </nav>
      <div className={classes.operation} tabIndex={-1}>
        {shown === undefined ? (
          <p className="dim">
            {data.operations.length.toLocaleString("en")} operations, described by <a href="/api/v1/openapi.json">/api/v1/openapi.json</a> (OpenAPI 3.1). Choose one to read it and to try it with your own session.
          </p>
        ) : (
          <OperationView key={shown.id} operation={shown} document={data.document} />
        )}
      </div>
    </div>
  );
}
