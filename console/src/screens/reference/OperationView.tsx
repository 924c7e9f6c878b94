import { Button, Group, TextInput } from "@mantine/core";
import { IconArrowLeft } from "@tabler/icons-react";
import { useMutation } from "@tanstack/react-query";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { address, requestRaw } from "../../api/client";
import { type JsonObject, type JsonValue, parseJson, printJson, readJson } from "../../api/json";
import { CodeBlock } from "../../components/CodeBlock";
import { CodeEditor } from "../../components/CodeEditor";
import { CopyAs } from "../../components/CopyAs";
import { ErrorNotice } from "../../components/ErrorState";
import { JsonView } from "../../components/JsonView";
import { StatusBadge } from "../../components/StatusBadge";
import { Ticked } from "../../components/Ticked";
import { confirm } from "../../components/confirm-store";
import { type Operation, resolved, sampleOf } from "./document";
import classes from "./Api.module.css";

/** A longer response is cut, because it would slow down the page. */
const SHOWN_MAX = 200_000;

interface Answer {
  status: number;
  milliseconds: number;
  json: JsonValue | undefined;
  text: string;
}

/** One operation: its parameters and responses, and a form to try it. */
export function OperationView({ operation, document }: { operation: Operation; document: JsonObject }) {
  const { method, path, summary, description, parameters, body, responses } = operation;
  const [values, setValues] = useState<Record<string, string>>({});
  const takesJson = body?.type.includes("json") === true;
  const [bodyText, setBodyText] = useState(() => (takesJson ? printJson(sampleOf(document, body.schema), 2) : ""));
  const bodyValue = readJson(bodyText);
  const isBodyWrong = takesJson && bodyText.trim() !== "" && bodyValue === undefined;
  const isStream = responses.some(({ description: text }) => /stream/i.test(text)) && path.endsWith("/stream");
  const target = address(
    path.replaceAll(/\{([^}]+)\}/g, (_, name: string) => encodeURIComponent(values[`path ${name}`] ?? "")),
    Object.fromEntries(parameters.filter((each) => each.in === "query").map(({ name }) => [name, values[`query ${name}`] ?? ""])),
  );
  const isMissing = parameters.some(({ in: place, name, required }) => (place === "path" || (required && place === "query")) && (values[`${place} ${name}`] ?? "") === "");
  const send = useMutation({
    mutationFn: async (): Promise<Answer> => {
      const begun = performance.now();
      const response = await requestRaw(method, target, takesJson && bodyValue !== undefined ? { body: bodyValue } : {});
      const text = await response.text();
      let json: JsonValue | undefined;
      if (response.headers.get("content-type")?.includes("json") === true && text.length <= SHOWN_MAX) json = parseJson(text);
      return { status: response.status, milliseconds: Math.round(performance.now() - begun), json, text: text.slice(0, SHOWN_MAX) };
    },
  });
  const ask = async () => {
    if (method === "DELETE" && !(await confirm({ title: "Send this DELETE?", children: `${target} is really deleted.`, action: "Send DELETE", danger: true }))) return;
    send.mutate();
  };
  return (
    <article className={classes.article}>
      <Link to="/api" search={{}} className={classes.back}>
        <IconArrowLeft size={14} aria-hidden="true" /> All operations
      </Link>
      <header>
        <h2>{summary === "" ? path : <Ticked text={summary} />}</h2>
        <code className="mono">
          <span className={classes.method} data-method={method}>
            {method}
          </span>{" "}
          {path}
        </code>
      </header>
      {description !== "" && (
        <p className={classes.text}>
          <Ticked text={description} />
        </p>
      )}
      {parameters.length > 0 && (
        <section>
          <h3>Parameters</h3>
          <div className={classes.parameters}>
            {parameters
              .filter((each) => each.in === "path" || each.in === "query")
              .map(({ name, in: place, required, description: about }) => (
                <TextInput
                  key={`${place} ${name}`}
                  label={name}
                  description={about === "" ? place : `${place}: ${about.split("\n")[0]}`}
                  required={required || place === "path"}
                  classNames={{ input: "mono" }}
                  value={values[`${place} ${name}`] ?? ""}
                  onChange={({ currentTarget }) => setValues((before) => ({ ...before, [`${place} ${name}`]: currentTarget.value }))}
                />
              ))}
          </div>
        </section>
      )}
      {body !== null && (
        <section>
          <h3>Body, {body.type}</h3>
          {takesJson ? <CodeEditor label="Body" value={bodyText} onChange={setBodyText} error={isBodyWrong ? "This is no JSON." : undefined} /> : <p className="dim">Send it with curl: the page does not make this type.</p>}
          <details>
            <summary>Schema</summary>
            <JsonView value={resolved(document, body.schema) ?? body.schema} label="Schema of the body" open={3} />
          </details>
        </section>
      )}
      <Group gap="sm">
        <Button onClick={() => void ask()} loading={send.isPending} disabled={isMissing || isBodyWrong || isStream || (body !== null && !takesJson)}>
          Send {method}
        </Button>
        <CopyAs request={{ method, path: target, ...(takesJson && bodyValue !== undefined ? { body: bodyValue } : {}) }} />
        {isStream && <span className="dim">Streams do not end: open it with curl.</span>}
      </Group>
      {send.error !== null && <ErrorNotice error={send.error} />}
      {send.data !== undefined && (
        <section aria-live="polite">
          <h3>
            Answer <StatusBadge tone="ok">{send.data.status}</StatusBadge> <span className="dim">{send.data.milliseconds.toLocaleString("en")} ms</span>
          </h3>
          {send.data.json !== undefined ? <JsonView value={send.data.json} label="Answer" open={3} /> : send.data.text === "" ? <p className="dim">No body.</p> : <CodeBlock code={send.data.text} label="Answer" />}
        </section>
      )}
      <section>
        <h3>Responses</h3>
        {responses.map(({ status, description: about, schema }) => (
          <details key={status} className={classes.response}>
            <summary>
              <span className="mono">{status}</span> <Ticked text={about} />
            </summary>
            {schema === undefined ? <p className="dim">No body.</p> : <JsonView value={resolved(document, schema) ?? schema} label={`Schema of ${status}`} open={3} />}
          </details>
        ))}
      </section>
    </article>
  );
}
