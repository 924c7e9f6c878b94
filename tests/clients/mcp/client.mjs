// Calls every tool with the protocol's own SDK, in a session, and waits for a notification of a change.
import assert from "node:assert/strict";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [base, token] = process.argv.slice(2);
const headers = { authorization: `Bearer ${token}` };

const rest = async (method, path, body) => {
  const response = await fetch(base + path, {
    method,
    headers: { ...headers, "content-type": "application/json" },
    body: body && JSON.stringify(body),
  });
  assert.ok(response.ok, `${method} ${path}: ${response.status}`);
};

const connect = async (path) => {
  const transport = new StreamableHTTPClientTransport(new URL(base + path), { requestInit: { headers } });
  const client = new Client({ name: "blockbase-test", version: "1.0.0" });
  await client.connect(transport);
  return { client, transport };
};

const goThrough = async (client) => {
  // The tools are listed first, because the SDK checks results only against output schemas that it knows.
  const { tools } = await client.listTools();
  const used = new Set();
  const call = async (name, args) => {
    used.add(name);
    const result = await client.callTool({ name, arguments: args });
    assert.notEqual(result.isError, true, `${name}: ${result.content[0].text}`);
    assert.deepEqual(JSON.parse(result.content[0].text), result.structuredContent);
    console.log(`${name} answers`);
    return result.structuredContent;
  };
  const object_name = "task";
  const { data: objects } = await call("list_objects", {});
  assert.deepEqual(objects.map((object) => object.name), ["label", "person", "task"]);
  const { data: task } = await call("get_object", { object_name });
  assert.deepEqual(task.expandKeys, ["owner", "labels"]);
  const { data: label } = await call("create_record", { object_name: "label", data: { name: "home" } });
  const { data: made } = await call("create_record", { object_name, data: { title: "Write", code: "one", count: 1 } });
  const { data: got } = await call("get_record", { object_name, id: made.id, expand: "labels" });
  assert.deepEqual(got.labels, []);
  const { data: updated } = await call("update_record", { object_name, id: made.id, data: { count: { $inc: 2 } } });
  assert.equal(updated.count, 3);
  const upserted = await call("upsert_record", { object_name, data: { title: "Wrote", code: "one" }, on_conflict: ["code"] });
  assert.deepEqual([upserted.created, upserted.data.id], [false, made.id]);
  const bulk = await call("bulk_create_records", { object_name, data: [{ title: "a" }, { title: "b" }] });
  assert.equal(bulk.count, 2);
  const filters = [{ field: "title", operator: "in", value: ["a", "b"] }];
  const page = await call("query_data", { object_name, filters, sort: "-title", page_size: 1, search: "B" });
  assert.deepEqual([page.pagination.totalCount, page.data[0].title], [1, "b"]);
  const { data: counted } = await call("aggregate_data", { object_name, fn: "count", filters });
  assert.equal(counted.value, 2);
  const links = { object_name, id: made.id, relation: "labels", ids: [label.id] };
  assert.deepEqual(await call("link_records", links), { data: { added: 1 } });
  assert.deepEqual(await call("unlink_records", links), { data: { removed: 1 } });
  const changes = { object_name, ids: bulk.ids, data: { title: "c", count: { $inc: 1 } } };
  assert.deepEqual(await call("bulk_update_records", changes), { count: 2, ids: bulk.ids });
  assert.deepEqual((await call("bulk_delete_records", { object_name, ids: bulk.ids })).ids, bulk.ids);
  const create = { op: "create", object: "label", values: { name: "batch" } };
  const link = { op: "link", object: object_name, id: made.id, relation: "labels", ids: [{ $ref: "0.id" }] };
  const { data: results } = await call("batch_records", { operations: [create, link] });
  assert.deepEqual([results[0].data.name, results[1]], ["batch", { data: { added: 1 } }]);
  assert.deepEqual(await call("delete_record", { object_name, id: made.id }), { data: { deleted: true } });
  assert.deepEqual(await call("echo_echo", { word: "é" }), { data: { word: "é" } });
  await call("echo_remember", {});
  const failed = await client.callTool({ name: "get_record", arguments: { object_name, id: made.id } });
  assert.equal(failed.isError, true);
  assert.equal(JSON.parse(failed.content[0].text).error, "not_found");
  // The SDK throws the protocol's own error.
  await assert.rejects(client.callTool({ name: "nothing", arguments: {} }), { code: -32602 });
  const broken = ["echo_spin", "echo_panic", "echo_hoard", "echo_refuse"];
  assert.deepEqual(tools.map((tool) => tool.name).filter((name) => !used.has(name) && !broken.includes(name)), []);
};

const { client, transport } = await connect("/api/v1/mcp");
assert.ok(transport.sessionId);
assert.equal(client.getServerVersion().name, "blockbase");
let told = 0;
let tell;
const changed = () => new Promise((resolve) => (tell = resolve));
const { ToolListChangedNotificationSchema } = await import("@modelcontextprotocol/sdk/types.js");
client.setNotificationHandler(ToolListChangedNotificationSchema, () => {
  told += 1;
  tell?.();
});
await goThrough(client);
await client.ping();

const next = changed();
await rest("POST", "/api/v1/objects", { name: "project", fields: [{ name: "name", type: "text" }] });
await next;
assert.equal(told, 1);
const { tools } = await client.listTools();
assert.match(tools.find((tool) => tool.name === "query_data").inputSchema.properties.object_name.description, /project/);
await rest("DELETE", "/api/v1/objects/project");
console.log("a change is told of");

await transport.terminateSession();
assert.equal(transport.sessionId, undefined);
await client.close();
console.log("the session is over");

const without = await connect("/api/v1/mcp?sessions=none");
assert.equal(without.transport.sessionId, undefined);
await goThrough(without.client);
await without.client.close();

await assert.rejects(
  new Client({ name: "blockbase-test", version: "1.0.0" }).connect(
    new StreamableHTTPClientTransport(new URL(`${base}/api/v1/mcp`), { requestInit: { headers: { authorization: "Bearer svc_no" } } }),
  ),
  { code: 401 },
);
console.log("all is well");
process.exit(0);
