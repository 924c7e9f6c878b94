import { Link } from "@tanstack/react-router";
import { CodeBlock } from "../../components/CodeBlock";
import { CopyText } from "../../components/Copy";
import classes from "./Api.module.css";

/** Explains how agents connect. The examples have a placeholder for the key, because each agent should get its own. */
export function Mcp() {
  const url = `${location.origin}/api/v1/mcp`;
  const header = { Authorization: "Bearer svc_…" };
  return (
    <div className={classes.texts}>
      <p>
        Agents reach the same objects and actions by the Model Context Protocol (Streamable HTTP) at <CopyText text={url} label="Copy the address" />. Give each agent <Link to="/keys" search={{ new: true }}>a key of its own</Link> with a role that holds <code className="mono">read</code> on <code className="mono">data</code> and what it needs; its list of tools has only
        what that role may do.
      </p>
      <section>
        <h2>Claude Code</h2>
        <CodeBlock label="Claude Code" code={`claude mcp add --transport http blockbase ${url} --header "Authorization: Bearer svc_…"`} />
      </section>
      <section>
        <h2>Cursor, in .cursor/mcp.json</h2>
        <CodeBlock label="Cursor" code={JSON.stringify({ mcpServers: { blockbase: { url, headers: header } } }, null, 2)} />
      </section>
      <section>
        <h2>VS Code, in .vscode/mcp.json</h2>
        <CodeBlock label="VS Code" code={JSON.stringify({ servers: { blockbase: { type: "http", url, headers: header } } }, null, 2)} />
      </section>
      <section>
        <h2>Any client that takes JSON</h2>
        <CodeBlock label="JSON" code={JSON.stringify({ mcpServers: { blockbase: { type: "http", url, headers: header } } }, null, 2)} />
      </section>
    </div>
  );
}
