/**
 * The validator interface of rjsf on top of an interpreter of JSON Schema 2020-12. It compiles nothing, because the content security policy
 * forbids `eval`.
 */
import { type OutputUnit, type Schema, Validator } from "@cfworker/json-schema";
import {
  type CustomValidator,
  type ErrorSchema,
  type ErrorTransformer,
  type FormContextType,
  type RJSFSchema,
  type RJSFValidationError,
  type StrictRJSFSchema,
  type UiSchema,
  type ValidationData,
  type ValidatorType,
  createErrorHandler,
  getDefaultFormState,
  toErrorList,
  toErrorSchema,
  unwrapErrorHandler,
  validationDataMerge,
} from "@rjsf/utils";
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

class Interpreter<T = unknown, S extends StrictRJSFSchema = RJSFSchema, F extends FormContextType = Record<string, unknown>> implements ValidatorType<T, S, F> {
  #errors(schema: S, data: unknown): OutputUnit[] {
    if (data === undefined) return [];
    return new Validator(schema as Schema, "2020-12", false).validate(forChecks(data)).errors.filter(({ keyword }) => !OUTER.has(keyword));
  }

  validateFormData(
    formData: T | undefined,
    schema: S,
    customValidate?: CustomValidator<T, S, F>,
    transformErrors?: ErrorTransformer<T, S, F>,
    uiSchema?: UiSchema<T, S, F>,
  ): ValidationData<T> {
    let errors = this.#errors(schema, formData ?? {}).map(readable);
    if (transformErrors !== undefined) errors = transformErrors(errors, uiSchema);
    const found: ValidationData<T> = { errors, errorSchema: toErrorSchema<T>(errors) };
    if (customValidate === undefined) return found;
    const defaults = getDefaultFormState<T, S, F>(this, schema, formData, schema, true) as T;
    const handler = customValidate(defaults, createErrorHandler<T>(defaults), uiSchema);
    const own: ErrorSchema<T> = unwrapErrorHandler<T>(handler);
    return validationDataMerge<T>(found, own);
  }

  toErrorList(errorSchema?: ErrorSchema<T>, fieldPath?: string[]): RJSFValidationError[] {
    return toErrorList<T>(errorSchema, fieldPath);
  }

  isValid(schema: S, formData: T | undefined, rootSchema: S): boolean {
    const whole = { ...(schema as object), ...(rootSchema.$defs === undefined ? {} : { $defs: rootSchema.$defs }), ...(rootSchema.definitions === undefined ? {} : { definitions: rootSchema.definitions }) };
    try {
      return new Validator(whole as Schema, "2020-12", true).validate(formData === undefined ? null : forChecks(formData)).valid;
    } catch {
      return false;
    }
  }

  rawValidation<Result = unknown>(schema: S, formData?: T): { errors?: Result[]; validationError?: Error } {
    try {
      return { errors: this.#errors(schema, formData) as Result[] };
    } catch (error) {
      return { errors: [], validationError: error as Error };
    }
  }

  reset(): void {
    // The validator has no state between calls.
  }
}

export const interpreter = new Interpreter();

export default interpreter;
