import { useMutation } from "@tanstack/react-query";
import { Link, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { api, dataOf } from "../../api/client";
import { isApiError } from "../../api/errors";
import type { JsonValue } from "../../api/json";
import type { Block, BlockAction } from "../../api/types";
import { asCurl } from "../../components/CopyAs";
import { CodeBlock } from "../../components/CodeBlock";
import { ErrorNotice } from "../../components/ErrorState";
import { JsonView } from "../../components/JsonView";
import { SchemaForm } from "../../components/SchemaForm";
import { neededFor } from "./blocks";
import classes from "./Blocks.module.css";

/** A form for each action, made from the schema of its input. The result appears below it. */
export function ActionsTab({ block }: { block: Block }) {
  const { action: wanted } = useSearch({ from: "/blocks/$block" });
  const action = block.actions.find(({ name }) => name === wanted) ?? block.actions[0];
  if (action === undefined) return <p className="dim">It has no actions.</p>;
  return (
    <div className={classes.columns}>
      <nav aria-label="Actions">
        <ul className={classes.list}>
          {block.actions.map(({ name }) => (
            <li key={name}>
              <Link className="mono" to="/blocks/$block" params={{ block: block.name }} search={{ tab: "actions", action: name }} aria-current={name === action.name ? "true" : undefined}>
                {name}
              </Link>
            </li>
          ))}
        </ul>
      </nav>
      <Call key={action.name} block={block.name} action={action} />
    </div>
  );
}

function Call({ block, action }: { block: string; action: BlockAction }) {
  const [input, setInput] = useState<JsonValue | undefined>({});
  const path = `/api/v1/blocks/${block}/actions/${action.name}`;
  const call = useMutation({ mutationFn: (value: JsonValue | undefined) => dataOf(api.POST("/api/v1/blocks/{block}/actions/{action}", { params: { path: { block, action: action.name } }, body: value ?? {} })) });
  const issues = isApiError(call.error) ? call.error.issues : [];
  const needed = neededFor(action);
  return (
    <div className={classes.tab}>
      <p dir="auto">{action.description}</p>
      <p className="dim">
        Needs <code className="mono">{needed.action}</code> on <code className="mono">{needed.resource}</code>. It has real effects.
      </p>
      <SchemaForm schema={action.input} value={input} onChange={setInput} onSubmit={(value) => call.mutate(value)} issues={issues} withDefaults submit="Run action" busy={call.isPending} />
      {call.error !== null && <ErrorNotice error={call.error} title="The action failed" />}
      {call.data !== undefined && (
        <section aria-live="polite">
          <h2>Result</h2>
          <JsonView value={call.data} label="Result" />
        </section>
      )}
      <CodeBlock label="The same with curl" code={asCurl({ method: "POST", path, body: input ?? {} })} />
    </div>
  );
}
