// Loads the schema of a running server, validates it with the reference implementation, and writes it as text.
// Usage: node schema.mjs <url of the endpoint> <bearer token> <file>
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { buildClientSchema, getIntrospectionQuery, lexicographicSortSchema, printSchema, validateSchema } from "graphql";

const [url, token, file] = process.argv.slice(2);
if (!file) throw new Error("usage: node schema.mjs <url> <token> <file>");

const query = getIntrospectionQuery({
  descriptions: true,
  specifiedByUrl: true,
  directiveIsRepeatable: true,
  schemaDescription: true,
  inputValueDeprecation: true,
  oneOf: true,
});
const response = await fetch(url, {
  method: "POST",
  headers: {
    accept: "application/graphql-response+json",
    "content-type": "application/json",
    authorization: `Bearer ${token}`,
  },
  body: JSON.stringify({ query }),
});
const text = await response.text();
assert.equal(response.status, 200, text);
const { data, errors } = JSON.parse(text);
assert.equal(errors, undefined, JSON.stringify(errors));

const schema = buildClientSchema(data);
const problems = validateSchema(schema);
assert.deepEqual(problems.map(({ message }) => message), []);
writeFileSync(file, `${printSchema(lexicographicSortSchema(schema))}\n`);
console.log(`${Object.keys(schema.getTypeMap()).length} types`);
