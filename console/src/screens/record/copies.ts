/** The requests for a record's screen, for each surface. */
import type { JsonObject } from "../../api/json";
import { type RecordShape, typeName } from "../../api/record-shape";
import { recordPath } from "../../api/records";
import type { CopyAsProps } from "../../components/CopyAs";

function fieldsOf(shape: RecordShape): string {
  return ["id", ...shape.columns.map(({ name }) => name), ...shape.system.filter((name) => name.endsWith("_at"))].join("\n    ");
}

export function copyRead(shape: RecordShape, id: string): CopyAsProps {
  const { object } = shape;
  return {
    request: { method: "GET", path: recordPath(object, id) },
    graphql: { query: `query ($id: ID!) {\n  ${object}_by_id(id: $id) {\n    ${fieldsOf(shape)}\n  }\n}`, variables: { id } },
    mcp: { tool: "get_record", arguments: { object_name: object, id } },
  };
}

/** The request that Save would send. */
export function copyUpdate(shape: RecordShape, id: string, body: JsonObject): CopyAsProps {
  const { object } = shape;
  return {
    request: { method: "PATCH", path: recordPath(object, id), body },
    graphql: {
      query: `mutation ($id: ID!, $input: ${typeName(object)}UpdateInput) {\n  update_${object}(id: $id, input: $input) {\n    ${fieldsOf(shape)}\n  }\n}`,
      variables: { id, input: body },
    },
    mcp: { tool: "update_record", arguments: { object_name: object, id, data: body } },
  };
}

export function copyCreate(shape: RecordShape, body: JsonObject): CopyAsProps {
  const { object } = shape;
  return {
    request: { method: "POST", path: recordPath(object), body },
    graphql: {
      query: `mutation ($input: ${typeName(object)}CreateInput!) {\n  create_${object}(input: $input) {\n    ${fieldsOf(shape)}\n  }\n}`,
      variables: { input: body },
    },
    mcp: { tool: "create_record", arguments: { object_name: object, data: body } },
  };
}
