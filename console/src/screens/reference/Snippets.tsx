import { Button, Select } from "@mantine/core";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useObjects } from "../../api/objects";
import { useCan } from "../../api/session";
import { asCurl, asJavaScript } from "../../components/CopyAs";
import { CodeBlock } from "../../components/CodeBlock";
import { EmptyState } from "../../components/EmptyState";
import { ErrorNotice } from "../../components/ErrorState";
import { SkeletonLines } from "../../components/Skeleton";
import classes from "./Api.module.css";

const SAMPLES: Record<string, unknown> = { integer: 1, big_integer: 1, decimal: 1.5, float: 1.5, percentage: 50, currency: 9.99, rating: 3, boolean: true, date: "2026-01-31", datetime: "2026-01-31T08:00:00Z", time: "08:00:00", json: {}, email: "ann@example.com", url: "https://example.com" };

/** Code examples that are ready to paste, with the names of a live object. */
export function Snippets() {
  const { object: wanted } = useSearch({ from: "/api" });
  const navigate = useNavigate({ from: "/api" });
  const canCreate = useCan("objects", "create");
  const { data: objects, error, refetch } = useObjects();
  if (objects === undefined) return error === null ? <SkeletonLines /> : <ErrorNotice error={error} title="The objects could not be loaded" onRetry={refetch} />;
  const object = objects.find(({ name }) => name === wanted) ?? objects[0];
  if (object === undefined)
    return (
      <EmptyState title="No objects yet" docs="POST /api/v1/objects" action={canCreate && <Button renderRoot={(props) => <Link to="/objects/new" {...props} />}>Create object</Button>}>
        Create an object, and its snippets stand here.
      </EmptyState>
    );
  const { name, fields = [] } = object;
  const path = `/api/v1/data/${name}`;
  const values = Object.fromEntries(fields.filter(({ required }) => required === true).map((field) => [field.name, field.options?.[0] ?? SAMPLES[field.type] ?? "text"]));
  const [first] = fields;
  const list = `${path}?sort=-created_at&pageSize=10`;
  return (
    <div className={classes.texts}>
      <Select label="Object" searchable data={objects.map((each) => each.name)} value={name} allowDeselect={false} onChange={(value) => void navigate({ search: (before) => ({ ...before, object: value ?? undefined }), replace: true })} w={280} />
      <section>
        <h2>List</h2>
        <CodeBlock label="List with curl" code={asCurl({ method: "GET", path: list })} />
      </section>
      <section>
        <h2>Create</h2>
        <CodeBlock label="Create with curl" code={asCurl({ method: "POST", path, body: values })} />
      </section>
      <section>
        <h2>JavaScript</h2>
        <CodeBlock label="JavaScript" code={asJavaScript({ method: "GET", path: list })} />
      </section>
      <section>
        <h2>GraphQL</h2>
        <CodeBlock label="GraphQL" code={`query {\n  ${name}(pageSize: 10) {\n    data { id${first === undefined ? "" : ` ${first.name}`} }\n    pagination { totalCount }\n  }\n}`} />
      </section>
      <section>
        <h2>Changes as they happen</h2>
        <CodeBlock label="Stream" code={`curl -N '${location.origin}/api/v1/events/stream?topics=data.${name}.%23' \\\n  -H "authorization: Bearer $SVC_API_KEY"`} />
      </section>
    </div>
  );
}
