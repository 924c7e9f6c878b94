// Pages through the connections of a running server with the unmodified Relay: its compiler reads the server's schema and writes the
// operations, and its store keeps the pages. There is no React: `open` below does what `usePaginationFragment` does with the same
// functions of the runtime.
// Usage: node relay.mjs <url of the endpoint> <bearer token>
import assert from "node:assert/strict";
import { execFileSync, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { buildSchema } from "graphql";
import { send as sendTo } from "./send.mjs";

const [url, token] = process.argv.slice(2);
if (!token) throw new Error("usage: node relay.mjs <url> <token>");

// The operations that the compiler writes are CommonJS.
const require = createRequire(import.meta.url);
const {
  Environment,
  Network,
  RecordSource,
  Store,
  commitLocalUpdate,
  commitMutation,
  createOperationDescriptor,
  fetchQuery,
  getPaginationMetadata,
  getPaginationVariables,
  getSingularSelector,
  getValueAtPath,
} = require("relay-runtime");

const RECORDS = 23;
// Relay reports what it does not expect as warnings: a value that is missing in an answer, a cursor that is not the end of its list.
const warnings = [];
console.error = (...parts) => warnings.push(parts.join(" "));

// ---- helpers -------------------------------------------------------------

async function step(name, run) {
  try {
    await run();
    assert.deepEqual(warnings, []);
  } catch (cause) {
    throw new Error(`step "${name}" failed: ${cause.message}`, { cause });
  }
  console.log(`ok ${name}`);
}

const send = (query, variables) => sendTo(url, token, query, variables);
const idsOf = (connection) => connection.edges.map(({ node }) => node.id);

// ---- the compiler --------------------------------------------------------

const CONNECTION = `edges { cursor node { id } } pageInfo { hasNextPage hasPreviousPage startCursor endCursor }`;

/** The documents of an application. The compiler reads them from a JavaScript file. */
const DOCUMENTS = [
  `query TasksQuery($first: Int, $after: String, $last: Int, $before: String, $sort: [SortInput!], $where: Task_Where) {
    ...Tasks_list @arguments(first: $first, after: $after, last: $last, before: $before, sort: $sort, where: $where)
  }`,
  `fragment Tasks_list on Query
  @refetchable(queryName: "TasksPageQuery")
  @argumentDefinitions(
    first: { type: "Int" }, after: { type: "String" }, last: { type: "Int" }, before: { type: "String" },
    sort: { type: "[SortInput!]" }, where: { type: "Task_Where" }
  ) {
    tasks: task_connection(first: $first, after: $after, last: $last, before: $before, sort: $sort, where: $where)
      @connection(key: "Tasks_tasks") {
      __id
      totalCount
      edges { cursor node { id title priority } }
      pageInfo { hasNextPage hasPreviousPage startCursor endCursor }
    }
  }`,
  `mutation TasksCreateMutation($input: TaskCreateInput!, $connections: [ID!]!) {
    create_task(input: $input) @appendNode(connections: $connections, edgeTypeName: "Task_Edge") { id title priority }
  }`,
  `mutation TasksUpdateMutation($id: ID!, $input: TaskUpdateInput!) {
    update_task(id: $id, input: $input) { id title }
  }`,
];

const folder = mkdtempSync(join(tmpdir(), "relay-"));

/** Compiles the documents of this test, and a query with `@connection` for each connection of the schema. */
function compile() {
  const source = join(folder, "src");
  mkdirSync(source);
  const schema = join(folder, "schema.graphql");
  execFileSync(process.execPath, ["schema.mjs", url, token, schema]);
  const fields = Object.values(buildSchema(readFileSync(schema, "utf8")).getQueryType().getFields());
  const connections = fields.filter(({ name, type }) => name.endsWith("_connection") && String(type).endsWith("_Connection"));
  // The test defines five objects, and each of them has a connection.
  assert.ok(connections.length >= 5, connections.map(({ name }) => name).join());
  const simple = connections.map(
    ({ name }, place) => `query TasksOfAll${place}Query { ${name}(first: 1) @connection(key: "TasksOfAll_${name}") { ${CONNECTION} } }`,
  );
  writeFileSync(join(source, "Tasks.js"), [...DOCUMENTS, ...simple].map((document) => `graphql\`${document}\`;\n`).join("\n"));
  // Everything below the folder is CommonJS.
  writeFileSync(join(folder, "package.json"), "{}");
  const config = join(folder, "relay.config.json");
  writeFileSync(config, JSON.stringify({ src: "./src", schema: "./schema.graphql", language: "javascript", eagerEsModules: false }));
  const ran = spawnSync(resolve("node_modules/.bin/relay-compiler"), [config], {
    cwd: folder,
    encoding: "utf8",
    // Otherwise the compiler asks for a service that lists the files, if the machine has one.
    env: { ...process.env, FORCE_NO_WATCHMAN: "1" },
  });
  assert.equal(ran.status, 0, `${ran.error ?? ""}${ran.stdout}${ran.stderr}`);
  return simple.length;
}

/** An operation or a fragment that the compiler wrote. */
const compiled = (name) => require(join(folder, "src", "__generated__", `${name}.graphql.js`));

// ---- the store -----------------------------------------------------------

/** A store and the edges that the server sent to it. The store hides an edge that comes twice, so they are counted here. */
function newStore() {
  const received = [];
  const network = Network.create(async ({ text }, variables) => {
    const result = await send(text, variables);
    if (result.data.tasks) received.push(...idsOf(result.data.tasks));
    return result;
  });
  return { environment: new Environment({ network, store: new Store(new RecordSource()) }), received };
}

/**
 * Opens a list of tasks with its first page, as a component would that has the fragment. Its `loadMore` asks for a page next to what
 * is there, and returns whether the store expected one.
 */
async function open(environment, variables) {
  const query = compiled("TasksQuery");
  const operation = createOperationDescriptor(query, variables);
  environment.retain(operation);
  await fetchQuery(environment, query, variables).toPromise();
  const fragment = compiled("Tasks_list");
  const selector = getSingularSelector(fragment, environment.lookup(operation.fragment).data);
  const { connectionPathInFragmentData, paginationRequest, paginationMetadata } = getPaginationMetadata(fragment, "relay.mjs");
  const read = () => {
    const snapshot = environment.lookup(selector);
    assert.equal(snapshot.isMissingData, false);
    return getValueAtPath(snapshot.data, connectionPathInFragmentData);
  };
  const loadMore = async (direction, count) => {
    const { edges, pageInfo } = read();
    assert.deepEqual([pageInfo.startCursor, pageInfo.endCursor], [edges.at(0).cursor, edges.at(-1).cursor]);
    const [cursor, more] =
      direction === "forward" ? [pageInfo.endCursor, pageInfo.hasNextPage] : [pageInfo.startCursor, pageInfo.hasPreviousPage];
    if (!more) return false;
    const all = { ...selector.owner.variables, ...selector.variables };
    const page = getPaginationVariables(direction, count, cursor, all, {}, paginationMetadata);
    await fetchQuery(environment, paginationRequest, page).toPromise();
    return true;
  };
  return { read, loadMore };
}

const mutate = (environment, mutation, variables) =>
  new Promise((onCompleted, onError) => commitMutation(environment, { mutation: compiled(mutation), variables, onCompleted, onError }));

// ---- the steps -----------------------------------------------------------

const LISTS = [
  ["the usual order", {}],
  ["an order by title", { sort: [{ field: "title", direction: "asc" }] }],
  ["an order with equal values and nulls", { sort: [{ field: "priority", direction: "desc" }, { field: "title" }] }],
  ["a condition", { sort: [{ field: "priority" }], where: { done: { eq: true } } }],
];

/** The ids of a list by its page number, which is another way through the server. */
async function expected({ sort, where }) {
  const query = "query ($sort: [SortInput!], $where: Task_Where) { task(pageSize: 100, sort: $sort, where: $where) { data { id } } }";
  return (await send(query, { sort, where })).data.task.data.map(({ id }) => id);
}

async function pages() {
  for (const [name, list] of LISTS) {
    const all = await expected(list);
    assert.ok(all.length >= 10, `${name}: ${all.length}`);

    await step(`${name}: forward to the end`, async () => {
      const { environment, received } = newStore();
      const { read, loadMore } = await open(environment, { ...list, first: 4 });
      for (let known = 4; ; known += 5) {
        const { edges, pageInfo, totalCount } = read();
        assert.deepEqual(idsOf({ edges }), all.slice(0, known));
        assert.deepEqual([pageInfo.hasPreviousPage, pageInfo.hasNextPage], [false, known < all.length]);
        assert.equal(totalCount, all.length);
        if (!(await loadMore("forward", 5))) break;
      }
      assert.deepEqual(received, all);
    });

    await step(`${name}: backward to the start`, async () => {
      const { environment, received } = newStore();
      const { read, loadMore } = await open(environment, { ...list, last: 4 });
      for (let known = 4; ; known += 5) {
        const { edges, pageInfo } = read();
        assert.deepEqual(idsOf({ edges }), all.slice(Math.max(0, all.length - known)));
        assert.deepEqual([pageInfo.hasPreviousPage, pageInfo.hasNextPage], [known < all.length, false]);
        if (!(await loadMore("backward", 5))) break;
      }
      assert.equal(received.length, all.length);
      assert.deepEqual([...received].sort(), [...all].sort());
    });

    await step(`${name}: from the middle in both directions`, async () => {
      const middle = Math.floor(all.length / 2);
      const whole = await open(newStore().environment, { ...list, first: 100 });
      const { cursor } = whole.read().edges[middle];
      // The other store has the whole list already.
      const { environment, received } = newStore();
      const { read, loadMore } = await open(environment, { ...list, first: 2, after: cursor });
      let [from, to] = [middle + 1, middle + 3];
      for (let more = true; more; ) {
        more = false;
        for (const direction of ["backward", "forward"]) {
          const { edges, pageInfo } = read();
          assert.deepEqual(idsOf({ edges }), all.slice(from, to));
          assert.deepEqual([pageInfo.hasPreviousPage, pageInfo.hasNextPage], [from > 0, to < all.length]);
          if (!(await loadMore(direction, 3))) continue;
          more = true;
          if (direction === "backward") from = Math.max(0, from - 3);
          else to = Math.min(all.length, to + 3);
        }
      }
      assert.deepEqual(idsOf(read()), all);
      assert.equal(received.length, all.length);
      assert.deepEqual([...received].sort(), [...all].sort());
    });
  }
}

async function identity() {
  const { environment } = newStore();
  const byTitle = await open(environment, { ...LISTS[1][1], first: 100 });
  const byPriority = await open(environment, { ...LISTS[2][1], first: 100 });

  await step("a record is the same in every list", async () => {
    assert.notEqual(byTitle.read().__id, byPriority.read().__id);
    assert.deepEqual(idsOf(byTitle.read()).sort(), idsOf(byPriority.read()).sort());
    // The store has it by its id.
    const ids = idsOf(byTitle.read());
    let types = [];
    commitLocalUpdate(environment, (store) => {
      types = ids.map((id) => store.get(id)?.getType());
    });
    assert.deepEqual(types, ids.map(() => "Task"));
  });

  await step("a change of a record shows in every list", async () => {
    const [id] = idsOf(byTitle.read());
    await mutate(environment, "TasksUpdateMutation", { id, input: { title: "renamed" } });
    for (const { read } of [byTitle, byPriority]) {
      assert.equal(read().edges.find(({ node }) => node.id === id).node.title, "renamed");
    }
  });

  await step("a new record is added to the lists that a mutation names", async () => {
    const known = idsOf(byTitle.read());
    const input = { title: "added", priority: 9 };
    const { create_task } = await mutate(environment, "TasksCreateMutation", { input, connections: [byTitle.read().__id] });
    assert.deepEqual(idsOf(byTitle.read()), [...known, create_task.id]);
    assert.deepEqual(idsOf(byPriority.read()).sort(), [...known].sort());
  });
}

try {
  await step("the compiler accepts the schema, with every connection", async () => {
    const connections = compile();
    for (let place = 0; place < connections; place += 1) {
      const { params } = compiled(`TasksOfAll${place}Query`);
      const { data } = await send(params.text, {});
      assert.ok(Array.isArray(Object.values(data)[0].edges), params.text);
    }
  });
  await step("a mutation creates records", async () => {
    const { environment } = newStore();
    for (let number = 0; number < RECORDS; number += 1) {
      // The order of the titles is not the one in which they are made.
      const title = `task ${String((number * 7) % RECORDS).padStart(2, "0")}`;
      const priority = number % 6 === 0 ? null : number % 4;
      const input = { title, priority, done: number % 2 === 0 };
      const { create_task } = await mutate(environment, "TasksCreateMutation", { input, connections: [] });
      assert.deepEqual([create_task.title, create_task.priority], [title, priority]);
    }
  });
  await pages();
  await identity();
} finally {
  rmSync(folder, { recursive: true });
}
// Connections that `fetch` keeps open must not keep the process running.
process.exit(0);
