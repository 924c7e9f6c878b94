// How GraphiQL asks: subscriptions over GraphQL-SSE in distinct connections, the rest by one POST each.
import { getOperationAST } from "graphql";
import { createClient } from "graphql-sse";

const url = location.pathname;
const credentials = "same-origin";

export function fetcher(params, { documentAST, headers } = {}) {
  const operation = documentAST && getOperationAST(documentAST, params.operationName);
  return operation?.operation === "subscription" ? events(params, headers) : answer(params, headers);
}

async function answer(params, headers) {
  const request = {
    method: "POST",
    credentials,
    headers: {
      accept: "application/graphql-response+json, application/json",
      "content-type": "application/json",
      ...headers,
    },
    body: JSON.stringify(params),
  };
  return fetch(url, request).then(read, (error) => problem(error.message));
}

async function* events(params, headers) {
  const client = createClient({ url, credentials, headers, retryAttempts: 0 });
  try {
    yield* client.iterate(params);
  } catch (error) {
    // A refusal says why in its body.
    yield error.response?.bodyUsed === false ? await read(error.response) : problem(error.message);
  } finally {
    client.dispose();
  }
}

async function read(response) {
  const text = await response.text();
  try {
    return JSON.parse(text);
  } catch {
    return problem(`The server answered ${response.status} without JSON. ${text.slice(0, 200)}`);
  }
}

/** What is shown as a result, without the trace that GraphiQL adds to what is thrown. */
function problem(message) {
  return { errors: [{ message }] };
}
