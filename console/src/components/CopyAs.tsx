import { Button } from "@mantine/core";
import { IconCheck, IconCopy } from "@tabler/icons-react";
import { useCopy } from "./Copy";
import { Menu } from "./floating";
import { printJson } from "../api/json";

export interface CopyAsProps {
  /** The request that the screen shows. `path` begins with `/api`. `body` is sent as JSON. */
  request: { method: string; path: string; body?: unknown };
  /** The same request as a GraphQL document, if GraphQL has it. */
  graphql?: { query: string; variables?: unknown } | undefined;
  /** The same request as a call of an MCP tool, if MCP has it. */
  mcp?: { tool: string; arguments: unknown } | undefined;
}

/** A text as one word of a shell. */
export const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`;

/** The request as a curl command. It uses a variable for the API key, because a session never leaves the browser. */
export function asCurl({ method, path, body }: CopyAsProps["request"], origin = location.origin): string {
  const lines = [`curl ${method === "GET" ? "" : `-X ${method} `}${quoted(origin + path)}`, `  -H "authorization: Bearer $SVC_API_KEY"`];
  if (body !== undefined) lines.push(`  -H 'content-type: application/json'`, `  -d ${quoted(printJson(body))}`);
  return lines.join(" \\\n");
}

/** The text of a body as an expression of JavaScript. If JavaScript would round a number of the body, this is its JSON text. */
function bodyExpression(body: unknown): string {
  const text = printJson(body);
  const isExact = JSON.stringify(JSON.parse(text)) === text;
  return isExact ? `JSON.stringify(${printJson(body, 2).replaceAll("\n", "\n  ")})` : JSON.stringify(text);
}

export function asJavaScript({ method, path, body }: CopyAsProps["request"], origin = location.origin): string {
  const options = [
    ...(method === "GET" ? [] : [`  method: ${JSON.stringify(method)},`]),
    body === undefined ? "  headers: { authorization: `Bearer ${process.env.SVC_API_KEY}` }," : "  headers: { authorization: `Bearer ${process.env.SVC_API_KEY}`, \"content-type\": \"application/json\" },",
    ...(body === undefined ? [] : [`  body: ${bodyExpression(body)},`]),
  ];
  return `const response = await fetch(${JSON.stringify(origin + path)}, {\n${options.join("\n")}\n});\nif (!response.ok) throw new Error(await response.text());\nconst answer = await response.json();`;
}

/** A menu that copies one of several texts, by their labels. */
export function CopyMenu({ texts }: { texts: [label: string, text: () => string][] }) {
  const [copied, copy] = useCopy();
  return (
    <Menu>
      <Menu.Target>
        <Button variant="default" leftSection={copied ? <IconCheck size={14} /> : <IconCopy size={14} />}>
          {copied ? "Copied" : "Copy as"}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {texts.map(([label, text]) => (
          <Menu.Item key={label} onClick={() => void copy(text())}>
            {label}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}

/** A menu that copies the request of a screen as curl, JavaScript, GraphQL or a call of MCP. */
export function CopyAs({ request, graphql, mcp }: CopyAsProps) {
  const texts: [string, () => string][] = [
    ["curl", () => asCurl(request)],
    ["JavaScript", () => asJavaScript(request)],
  ];
  if (graphql !== undefined) texts.push(["GraphQL", () => (graphql.variables === undefined ? graphql.query : `${graphql.query}\n\n# variables\n${printJson(graphql.variables, 2)}`)]);
  if (mcp !== undefined) texts.push(["MCP", () => printJson({ method: "tools/call", params: { name: mcp.tool, arguments: mcp.arguments } }, 2)]);
  return <CopyMenu texts={texts} />;
}
