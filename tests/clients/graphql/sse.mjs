// Tests a running server with the unmodified client of GraphQL-SSE, in both of its modes.
// Usage: node sse.mjs <url of the endpoint> <bearer token>
import assert from "node:assert/strict";
import { createClient } from "graphql-sse";

const [url, token] = process.argv.slice(2);
if (!token) throw new Error("usage: node sse.mjs <url> <token>");

const AUTHORIZATION = { authorization: `Bearer ${token}` };
const TOKEN_HEADER = "x-graphql-event-stream-token";
// The maximum wait for something that has to arrive.
const MOST_MS = 20_000;
// If nothing arrives for this long, the stream counts as stopped.
const QUIET_MS = 500;
const HEARTBEAT_MS = 15_000;

const CREATE = "mutation ($title: String!) { create_task(input: { title: $title }) { id title } }";
const UPDATE = "mutation ($id: ID!, $title: String!) { update_task(id: $id, input: { title: $title }) { id title } }";
const EVENTS = "subscription ($topics: [String!]) { events(topics: $topics) { id topic occurredAt payload } }";

// ---- helpers -------------------------------------------------------------

let place = "";

async function step(name, run) {
  try {
    await run();
  } catch (cause) {
    throw new Error(`step "${place}: ${name}" failed: ${cause.message}`, { cause });
  }
  console.log(`ok ${place}: ${name}`);
}

const pause = (time_ms) => new Promise((resolve) => setTimeout(resolve, time_ms));

async function until(what, condition, most_ms = MOST_MS) {
  const end = Date.now() + most_ms;
  for (;;) {
    const value = await condition();
    if (value) return value;
    if (Date.now() > end) throw new Error(`${what} did not come about in ${most_ms} ms`);
    await pause(10);
  }
}

let words = 0;
const newTitle = () => `title ${process.pid}-${(words += 1)}`;

/** Records every request of a client, with the status of its response. */
function recordingFetch() {
  const requests = [];
  const fetchFn = async (address, init) => {
    const headers = new Headers(init.headers);
    const request = { method: init.method ?? "GET", address: String(address), token: headers.get(TOKEN_HEADER), body: init.body };
    requests.push(request);
    const response = await fetch(address, init);
    request.type = response.headers.get("content-type");
    request.status = response.status;
    if (request.type?.startsWith("text/event-stream")) return response;
    // The client does not read the body of an error response. The tests need it, so it is read here.
    const { status, statusText, headers: answered } = response;
    return new Response((await response.text()) || null, { status, statusText, headers: answered });
  };
  return { requests, fetchFn };
}

/** A client, with its requests and the frames that it receives. */
function newClient(singleConnection, headers = () => ({ ...AUTHORIZATION })) {
  const { requests, fetchFn } = recordingFetch();
  const frames = [];
  const client = createClient({
    url,
    singleConnection,
    headers,
    fetchFn,
    retryAttempts: 0,
    on: { message: (frame) => frames.push(frame) },
  });
  return { client, requests, frames, singleConnection };
}

/** Subscribes, and returns when the server has accepted the subscription. Changes that are committed afterwards must arrive. */
async function subscribe({ client, requests, singleConnection }, topics) {
  const subscription = { events: [], results: [], ended: false, error: null };
  const marker = `${EVENTS} # ${newTitle()}`;
  subscription.stop = client.subscribe(
    { query: marker, variables: { topics } },
    {
      next: (result) => {
        subscription.results.push(result);
        if (result.data?.events) subscription.events.push(result.data.events);
      },
      error: (error) => Object.assign(subscription, { error, ended: true }),
      complete: () => Object.assign(subscription, { ended: true }),
    },
  );
  const asked = () => requests.find(({ body }) => typeof body === "string" && JSON.parse(body).query === marker);
  await until("the subscription", () => asked()?.status !== undefined || subscription.ended);
  assert.equal(subscription.error, null, String(subscription.error));
  assert.equal(asked().status, singleConnection ? 202 : 200);
  if (singleConnection) subscription.operation = JSON.parse(asked().body).extensions.operationId;
  return subscription;
}

/** The only result of an operation that ends by itself. */
async function result({ client }, query, variables) {
  const results = [];
  for await (const result of client.iterate({ query, variables })) results.push(result);
  assert.equal(results.length, 1, JSON.stringify(results));
  return results[0];
}

async function done(connected, query, variables) {
  const { data, errors } = await result(connected, query, variables);
  assert.equal(errors, undefined, JSON.stringify(errors));
  return data;
}

const create = async (connected, title) => (await done(connected, CREATE, { title })).create_task.id;
const update = async (connected, id, title) => (await done(connected, UPDATE, { id, title })).update_task;

/** Waits until `count` events of one record have arrived. Returns them as `[topic, title]`. */
async function changes(subscription, id, count) {
  const about = () => subscription.events.filter(({ payload }) => payload.id === id);
  await until(`event ${count} of ${id}`, () => about().length >= count);
  return about().map(({ topic, payload }) => [topic, payload.after.title]);
}

/** The server's errors for an operation: as a result on the stream, or as the body of an error response. */
async function refusal({ client, singleConnection }, query) {
  const results = [];
  try {
    for await (const result of client.iterate({ query })) results.push(result);
  } catch (problem) {
    assert.ok(problem.response, `no refusal of the server: ${problem.stack}`);
    return { status: problem.response.status, body: await problem.response.json() };
  }
  assert.ok(!singleConnection, `an operation that cannot run was accepted: ${JSON.stringify(results)}`);
  assert.equal(results.length, 1, JSON.stringify(results));
  return { status: 200, body: results[0] };
}

/** Returns when the server has dropped a reservation whose stream was closed. */
async function released(reserved) {
  const headers = { ...AUTHORIZATION, [TOKEN_HEADER]: reserved };
  const asked = async () => (await fetch(`${url}?operationId=none`, { method: "DELETE", headers })).status;
  await until("the stream's end at the server", async () => (await asked()) === 404);
}

// ---- both modes ----------------------------------------------------------

async function speaks(singleConnection) {
  place = singleConnection ? "single connection" : "distinct connections";
  const open = newClient(singleConnection);

  await step("a query gives its result and ends", async () => {
    const { svc_objects, __typename } = await done(open, "{ __typename svc_objects }");
    assert.ok(JSON.stringify(svc_objects).includes("task"), JSON.stringify(svc_objects));
    assert.equal(typeof __typename, "string");
  });

  await step("a mutation gives its result and ends", async () => {
    const title = newTitle();
    const { create_task } = await done(open, CREATE, { title });
    assert.equal(create_task.title, title);
    const { task_by_id } = await done(open, "query ($id: ID!) { task_by_id(id: $id) { title } }", { id: create_task.id });
    assert.deepEqual(task_by_id, { title });
  });

  await step("a subscription sees what mutations write, in order", async () => {
    const subscription = await subscribe(open, ["data.task.#"]);
    const [before, after] = [newTitle(), newTitle()];
    const id = await create(open, before);
    await update(open, id, after);
    assert.deepEqual(await changes(subscription, id, 2), [["data.task.created", before], ["data.task.updated", after]]);

    const [created, updated] = subscription.events.filter(({ payload }) => payload.id === id);
    assert.notEqual(created.id, updated.id);
    for (const event of [created, updated]) {
      assert.deepEqual(Object.keys(event), ["id", "topic", "occurredAt", "payload"]);
      assert.ok(Math.abs(new Date(event.occurredAt) - Date.now()) < 60_000, event.occurredAt);
      assert.equal(event.payload.object, "task");
    }
    assert.equal(created.payload.before, null);
    assert.equal(updated.payload.before.title, before);
    subscription.stop();
    await until("the end", () => subscription.ended);
    assert.equal(subscription.error, null);
  });

  await step("several subscriptions at once see each what it asked for", async () => {
    const topics = [["data.task.#"], ["data.task.created"], ["data.task.updated"], ["data.*.created"], ["data.task.created", "data.task.updated"], ["data.other.#"]];
    const subscriptions = await Promise.all(topics.map((topics) => subscribe(open, topics)));
    const [before, after] = [newTitle(), newTitle()];
    const id = await create(open, before);
    await update(open, id, after);
    const [created, updated] = [["data.task.created", before], ["data.task.updated", after]];
    const expected = [[created, updated], [created], [updated], [created], [created, updated], []];
    for (const [place, subscription] of subscriptions.entries()) {
      assert.deepEqual(await changes(subscription, id, expected[place].length), expected[place], topics[place].join());
    }
    await pause(QUIET_MS);
    for (const [place, subscription] of subscriptions.entries()) {
      const all = subscription.events.filter(({ payload }) => payload.id === id);
      assert.equal(all.length, expected[place].length, `${topics[place]}: no event twice, and none that was not asked for`);
      subscription.stop();
    }
  });

  await step("one that was unsubscribed gets nothing more, and the others go on", async () => {
    const [stopped, kept] = await Promise.all([subscribe(open, ["data.task.#"]), subscribe(open, ["data.task.#"])]);
    const first = await create(open, newTitle());
    await changes(stopped, first, 1);
    await changes(kept, first, 1);
    stopped.stop();
    await until("the end", () => stopped.ended);
    if (singleConnection) {
      const asked = ({ method, address }) => method === "DELETE" && address.includes(`operationId=${stopped.operation}`);
      assert.equal((await until("the request to stop", () => open.requests.find((request) => asked(request) && request.status))).status, 200);
      // Frames that were already on their way may still arrive.
      await pause(QUIET_MS);
    }
    const frames = open.frames.length;
    const second = await create(open, newTitle());
    await changes(kept, second, 1);
    await pause(QUIET_MS);
    assert.ok(!stopped.events.some(({ payload }) => payload.id === second));
    if (singleConnection) {
      const late = open.frames.slice(frames).filter(({ event, data }) => event === "next" && data.id === stopped.operation);
      assert.deepEqual(late, [], "the server stops sending");
    }
    kept.stop();
  });

  // If requests are separate from the stream, the response to the request refuses them, by the rules of GraphQL over HTTP. Otherwise a
  // result on the stream reports the error. Text that is not GraphQL may be refused in the response in this mode, too.
  const [streamed, either] = [[200], [200, 400]];
  for (const [name, query, distinct] of [
    ["a syntax error", "{ svc_objects ", either],
    ["a query that is not valid", "{ no_such_field }", streamed],
    ["a subscription that is not valid", "subscription { events { no_such_field } }", streamed],
    ["a variable that is not declared", "subscription { events(topics: $topics) { id } }", streamed],
  ]) {
    await step(`${name} is told`, async () => {
      const { status, body } = await refusal(open, query);
      assert.ok((singleConnection ? either : distinct).includes(status), String(status));
      assert.ok(Array.isArray(body.errors) && body.errors.length > 0, JSON.stringify(body));
      assert.ok(body.errors.every(({ message }) => typeof message === "string" && message !== ""), JSON.stringify(body));
      assert.ok(!("data" in body) || body.data === null, JSON.stringify(body));
    });
  }

  await step("after errors the client goes on", async () => {
    assert.ok((await done(open, "{ svc_schema_version }")).svc_schema_version !== undefined);
  });

  await step("wrong credentials are 401", async () => {
    for (const headers of [{ authorization: "Bearer wrong" }, { "x-api-key": "svc_wrong" }]) {
      const wrong = newClient(singleConnection, headers);
      await assert.rejects(result(wrong, "{ svc_objects }"), (problem) => problem.response?.status === 401 || assert.fail(problem));
      wrong.client.dispose();
    }
  });

  await step("the client's end ends every stream", async () => {
    const ending = newClient(singleConnection);
    const subscriptions = await Promise.all([1, 2, 3].map(() => subscribe(ending, ["data.task.#"])));
    const first = await create(open, newTitle());
    for (const subscription of subscriptions) await changes(subscription, first, 1);
    const reserved = ending.requests.find(({ token }) => token)?.token;
    ending.client.dispose();
    await until("their end", () => subscriptions.every(({ ended }) => ended));
    const frames = ending.frames.length;
    await create(open, newTitle());
    await pause(QUIET_MS);
    assert.equal(ending.frames.length, frames);
    if (!singleConnection) return;
    await released(reserved);
  });

  open.client.dispose();
  return open;
}

// ---- one mode only -------------------------------------------------------

async function reservations() {
  place = "reservations";
  const open = newClient(true);

  await step("one connection carries all operations", async () => {
    const subscriptions = await Promise.all(Array.from({ length: 8 }, () => subscribe(open, ["data.task.#"])));
    const id = await create(open, newTitle());
    for (const subscription of subscriptions) await changes(subscription, id, 1);
    const methods = open.requests.map(({ method, type }) => `${method} ${type?.split(";")[0]}`);
    assert.equal(methods.filter((method) => method.startsWith("PUT")).length, 1, methods.join());
    assert.equal(methods.filter((method) => method.endsWith("text/event-stream")).length, 1, methods.join());
    const operations = new Set(open.frames.map(({ data }) => data?.id));
    for (const { operation } of subscriptions) assert.ok(operations.has(operation));
  });

  await step("no second stream is behind a reservation", async () => {
    const { token: reserved } = open.requests.find(({ token }) => token);
    const headers = { ...AUTHORIZATION, [TOKEN_HEADER]: reserved, accept: "text/event-stream" };
    const second = await fetch(url, { headers });
    await second.body?.cancel();
    assert.equal(second.status, 409);
    open.client.dispose();
  });

  await step("a client whose connection closed comes back", async () => {
    // If the headers are an object, the client stores the token of the last reservation in it, and sends it with the request for the next
    // one.
    const again = newClient(true, { ...AUTHORIZATION });
    await done(again, "{ svc_schema_version }");
    const { token: reserved } = again.requests.find(({ token }) => token);
    await released(reserved);
    await done(again, "{ svc_schema_version }");
    assert.equal(again.requests.filter(({ method }) => method === "PUT").at(-1).token, reserved);
    again.client.dispose();
  });

  await step("a reservation nobody made is not found", async () => {
    const headers = { ...AUTHORIZATION, [TOKEN_HEADER]: "5f0e4f64-0000-4000-8000-000000000000" };
    const body = JSON.stringify({ query: "{ svc_objects }", extensions: { operationId: "1" } });
    const asked = await fetch(url, { method: "POST", headers: { ...headers, "content-type": "application/json" }, body });
    const stopped = await fetch(`${url}?operationId=1`, { method: "DELETE", headers });
    assert.deepEqual([asked.status, stopped.status], [404, 404]);
    const stream = await fetch(url, { headers: { ...headers, accept: "text/event-stream" } });
    await stream.body?.cancel();
    assert.ok([400, 404].includes(stream.status), String(stream.status));
  });
}

/** A stream without events still sends comments. */
async function heartbeat() {
  const response = await fetch(url, {
    method: "POST",
    headers: { ...AUTHORIZATION, accept: "text/event-stream", "content-type": "application/json" },
    body: JSON.stringify({ query: EVENTS, variables: { topics: ["nothing.#"] } }),
  });
  assert.equal(response.status, 200);
  assert.match(response.headers.get("content-type"), /^text\/event-stream/);
  const begun = Date.now();
  const comments = [];
  const decoder = new TextDecoder();
  let text = "";
  for await (const bytes of response.body) {
    text += decoder.decode(bytes, { stream: true });
    const frames = text.split("\n\n");
    text = frames.pop();
    for (const frame of frames) {
      assert.ok(frame.startsWith(":"), `nothing but comments: ${frame}`);
      comments.push(Date.now() - begun);
    }
    // The server may send the first comment as soon as the stream opens.
    if (comments.some((after_ms) => after_ms > HEARTBEAT_MS / 2)) break;
  }
  const last = comments.at(-1);
  assert.ok(Math.abs(last - HEARTBEAT_MS) < HEARTBEAT_MS / 3, `a comment after ${last} ms`);
}

// It only waits, so it runs at the same time as the other tests.
const beating = heartbeat().then(() => null, (problem) => problem);
await speaks(false);
await speaks(true);
await reservations();
place = "distinct connections";
await step("an idle stream has a comment every fifteen seconds", async () => {
  const late = pause(HEARTBEAT_MS * 2).then(() => new Error("no comment came"));
  const problem = await Promise.race([beating, late]);
  if (problem) throw problem;
});
// Connections that the client keeps open must not keep the process running.
process.exit(0);
