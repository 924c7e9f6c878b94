// Loads the schema of a running server, validates it with the reference implementation, and writes it as text.
// Usage: node schema.mjs <url of the endpoint> <bearer token> <file>
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { buildClientSchema, getIntrospectionQuery, lexicographicSortSchema, printSchema, validateSchema } from "graphql";
import { send } from "./send.mjs";

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
const { data } = await send(url, token, query);

const schema = buildClientSchema(data);
const problems = validateSchema(schema);
assert.deepEqual(problems.map(({ message }) => message), []);
writeFileSync(file, `${printSchema(lexicographicSortSchema(schema))}\n`);
console.log(`${Object.keys(schema.getTypeMap()).length} types`);
