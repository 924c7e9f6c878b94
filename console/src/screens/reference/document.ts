/** The parts of the server's OpenAPI document that the reference shows. */
import { type JsonObject, type JsonValue, isJsonObject } from "../../api/json";
import { openApiQuery } from "../../api/openapi";

export interface Parameter {
  name: string;
  in: "path" | "query" | "header" | "cookie";
  required: boolean;
  description: string;
  schema: JsonValue;
}

export interface Operation {
  /** A unique id: "GET /api/v1/data/{object}". */
  id: string;
  method: string;
  path: string;
  tag: string;
  summary: string;
  description: string;
  parameters: Parameter[];
  body: { type: string; schema: JsonValue } | null;
  responses: { status: string; description: string; schema: JsonValue | undefined }[];
}

export interface Described {
  operations: Operation[];
  document: JsonObject;
}

const METHODS = ["get", "post", "put", "patch", "delete"];
const text = (value: JsonValue | undefined) => (typeof value === "string" ? value : "");
const object = (value: JsonValue | undefined) => (isJsonObject(value) ? value : undefined);
const list = (value: JsonValue | undefined) => (Array.isArray(value) ? value : []);

/** Follows a `$ref` inside the document. */
export function resolved(document: JsonObject, value: JsonValue | undefined): JsonObject | undefined {
  let at = object(value);
  for (let steps = 0; at !== undefined && typeof at.$ref === "string" && steps < 8; steps++) {
    let next: JsonValue | undefined = document;
    for (const part of at.$ref.replace(/^#\//, "").split("/")) next = object(next)?.[part.replaceAll("~1", "/").replaceAll("~0", "~")];
    at = object(next);
  }
  return at;
}

function firstContent(document: JsonObject, value: JsonValue | undefined): { type: string; schema: JsonValue } | null {
  const content = object(resolved(document, value)?.content);
  const [entry] = Object.entries(content ?? {});
  return entry === undefined ? null : { type: entry[0], schema: object(entry[1])?.schema ?? {} };
}

function operationsOf(document: JsonObject): Operation[] {
  return Object.entries(object(document.paths) ?? {}).flatMap(([path, item]) =>
    METHODS.flatMap((method): Operation[] => {
      const operation = object(object(item)?.[method]);
      if (operation === undefined) return [];
      const parameters = [...list(object(item)?.parameters), ...list(operation.parameters)].flatMap((each): Parameter[] => {
        const parameter = resolved(document, each);
        if (parameter === undefined) return [];
        return [{ name: text(parameter.name), in: text(parameter.in) as Parameter["in"], required: parameter.required === true, description: text(parameter.description), schema: parameter.schema ?? {} }];
      });
      const responses = Object.entries(object(operation.responses) ?? {}).map(([status, response]) => ({
        status,
        description: text(resolved(document, response)?.description),
        schema: firstContent(document, response)?.schema,
      }));
      return [
        {
          id: `${method.toUpperCase()} ${path}`,
          method: method.toUpperCase(),
          path,
          tag: text(list(operation.tags)[0]) || "other",
          summary: text(operation.summary),
          description: text(operation.description),
          parameters,
          body: firstContent(document, operation.requestBody),
          responses,
        },
      ];
    }),
  );
}

const described = (document: JsonObject): Described => ({ document, operations: operationsOf(document) });

/** The document with its operations. The cache has the document itself, because other screens read it too. */
export const describedQuery = { ...openApiQuery, select: described };

const DEPTH_MAX = 4;

/** An example value for a schema. It uses the schema's examples and defaults if there are any. */
export function sampleOf(document: JsonObject, schema: JsonValue | undefined, depth = 0): JsonValue {
  const described = resolved(document, schema);
  if (described === undefined || depth > DEPTH_MAX) return null;
  if (described.example !== undefined) return described.example;
  if (described.default !== undefined) return described.default;
  if (described.const !== undefined) return described.const;
  const options = list(described.enum);
  if (options.length > 0) return options[0]!;
  for (const key of ["allOf", "oneOf", "anyOf"]) {
    const [first] = list(described[key]);
    if (first !== undefined) return sampleOf(document, first, depth + 1);
  }
  const type = Array.isArray(described.type) ? described.type.find((each) => each !== "null") : described.type;
  if (type === "object" || described.properties !== undefined) {
    const required = new Set(list(described.required));
    const properties = Object.entries(object(described.properties) ?? {});
    // If the schema has required members, the example has only these. The schema below shows the others.
    const wanted = required.size > 0 ? properties.filter(([name]) => required.has(name)) : properties.slice(0, 6);
    return Object.fromEntries(wanted.map(([name, value]) => [name, sampleOf(document, value, depth + 1)]));
  }
  if (type === "array") return described.items === undefined ? [] : [sampleOf(document, described.items, depth + 1)];
  if (type === "integer" || type === "number") return 0;
  if (type === "boolean") return false;
  return type === "string" ? "" : null;
}
