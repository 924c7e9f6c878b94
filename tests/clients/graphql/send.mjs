// The one way in which the clients of this folder send an operation.
import assert from "node:assert/strict";

/** Sends an operation to the endpoint, whose result must have no errors. */
export async function send(url, token, query, variables) {
  const response = await fetch(url, {
    method: "POST",
    headers: {
      accept: "application/graphql-response+json",
      "content-type": "application/json",
      authorization: `Bearer ${token}`,
    },
    body: JSON.stringify({ query, variables }),
  });
  const text = await response.text();
  assert.equal(response.status, 200, text);
  const result = JSON.parse(text);
  assert.equal(result.errors, undefined, text);
  return result;
}
