/**
 * The validator interface of rjsf on top of an interpreter of JSON Schema 2020-12. It compiles nothing, because the content security policy
 * forbids `eval`.
 */
import { type OutputUnit, type Schema, Validator } from "@cfworker/json-schema";
import { type RJSFSchema, type RJSFValidationError, type ValidatorType, toErrorSchema } from "@rjsf/utils";
import { forChecks } from "./exact";

/** Keywords whose error only says that one of their children failed. */
const OUTER = new Set(["properties", "items", "prefixItems", "additionalProperties", "allOf", "$ref", "patternProperties", "if", "then", "else"]);

/** Converts `#/a/0/b~1c` to the format of rjsf: `.a.0.b/c`. */
function property(location: string): string {
  const segments = location.replace(/^#\/?/, "").split("/").filter((each) => each !== "");
  return segments.map((each) => `.${decodeURIComponent(each).replaceAll("~1", "/").replaceAll("~0", "~")}`).join("");
}

function readable({ keyword, error, instanceLocation }: OutputUnit): RJSFValidationError {
  const missing = keyword === "required" ? /"([^"]+)"/.exec(error)?.[1] : undefined;
  const message = missing === undefined ? error : "This is required.";
  const at = missing === undefined ? property(instanceLocation) : `${property(instanceLocation)}.${missing}`;
  return { name: keyword, property: at, message, stack: `${at} ${message}`.trim() };
}

class Interpreter implements ValidatorType {
  #errors(schema: RJSFSchema, data: unknown): OutputUnit[] {
    if (data === undefined) return [];
    return new Validator(schema as Schema, "2020-12", false).validate(forChecks(data)).errors.filter(({ keyword }) => !OUTER.has(keyword));
  }

  /** The form has no checks besides those of its schema. */
  validateFormData(formData: unknown, schema: RJSFSchema) {
    const errors = this.#errors(schema, formData ?? {}).map(readable);
    return { errors, errorSchema: toErrorSchema(errors) };
  }

  isValid(schema: RJSFSchema, formData: unknown, rootSchema: RJSFSchema): boolean {
    const whole = { ...(schema as object), ...(rootSchema.$defs === undefined ? {} : { $defs: rootSchema.$defs }), ...(rootSchema.definitions === undefined ? {} : { definitions: rootSchema.definitions }) };
    try {
      return new Validator(whole as Schema, "2020-12", true).validate(formData === undefined ? null : forChecks(formData)).valid;
    } catch {
      return false;
    }
  }

  rawValidation<Result>(schema: RJSFSchema, formData?: unknown) {
    return { errors: this.#errors(schema, formData) as Result[] };
  }
}

export const interpreter = new Interpreter();

export default interpreter;
