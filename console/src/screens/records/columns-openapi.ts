/**
 * The shape of an object for those who may read its records but not the schema: the OpenAPI document, which shows everybody the
 * objects that they may use.
 */
import { type JsonObject, type JsonValue, isJsonObject } from "../../api/json";
import type { FieldType } from "../../api/types";
import { type RecordColumn, type RecordShape, shaped } from "./columns";

const at = (value: JsonValue | undefined, ...path: string[]): JsonValue | undefined => path.reduce<JsonValue | undefined>((now, key) => (isJsonObject(now) ? now[key] : undefined), value);

/** A schema by its `$ref`, such as `#/components/schemas/Task`. */
function resolved(document: JsonObject, schema: JsonValue | undefined): JsonObject | undefined {
  const reference = at(schema, "$ref");
  const found = typeof reference === "string" ? at(document, ...reference.replace(/^#\//, "").split("/")) : schema;
  return isJsonObject(found) ? found : undefined;
}

function typeOf(schema: JsonObject): FieldType {
  const types = [schema.type].flat();
  const { format } = schema;
  if (types.includes("boolean")) return "boolean";
  if (types.includes("array")) return "multi_enum";
  if (types.includes("integer")) return format === "int64" ? "big_integer" : "integer";
  if (types.includes("number")) return format === "double" ? "float" : "decimal";
  if (!types.includes("string")) return "json";
  if (Array.isArray(schema.enum)) return "enum";
  const formats: Record<string, FieldType> = { uuid: "uuid", date: "date", "date-time": "datetime", uri: "url", email: "email" };
  if (typeof format === "string" && formats[format] !== undefined) return formats[format];
  return typeof schema.pattern === "string" && schema.pattern.startsWith("^[0-9]{2}:") ? "time" : "text";
}

const SYSTEM = new Set(["id", "created_at", "updated_at", "created_by", "updated_by"]);

export function shapeFromOpenApi(document: JsonObject, object: string): RecordShape | undefined {
  const answer = at(document, "paths", `/api/v1/data/${object}/{id}`, "get", "responses", "200", "content", "application/json", "schema");
  const record = resolved(document, at(resolved(document, answer), "properties", "data"));
  const properties = at(record, "properties");
  if (!isJsonObject(properties)) return undefined;
  const listed = at(record, "required");
  const keys = Array.isArray(listed) ? listed.filter((key): key is string => typeof key === "string") : Object.keys(properties);
  const own = keys
    .filter((key) => !SYSTEM.has(key))
    .map((key): RecordColumn => {
      const schema = isJsonObject(properties[key]) ? properties[key] : {};
      const nullable = [schema.type].flat().includes("null") || schema.type === undefined;
      const target = typeof schema.description === "string" ? /^The id of a record of `(\w+)`/.exec(schema.description)?.[1] : undefined;
      const name = key.replace(/_id$/, "");
      const choices = schema.enum ?? at(schema, "items", "enum");
      return {
        id: key,
        label: target === undefined ? key : name,
        type: typeOf(schema),
        required: !nullable,
        isSystem: false,
        ...(target === undefined ? {} : { relation: { name, target } }),
        ...(Array.isArray(choices) ? { options: choices.filter((choice): choice is string => typeof choice === "string") } : {}),
      };
    });
  return shaped(object, typeof record?.title === "string" ? record.title : object, own);
}
