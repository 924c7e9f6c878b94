import { isApiError } from "../../../api/errors";
import { keyOfMessage } from "./fieldProblems";

/** The server's message about a field, keyed by the part of the definition that it is about. */
export function refusalAt(error: unknown): Record<string, string> {
  if (!isApiError(error) || !["invalid_schema", "invalid_schema_change", "object_exists"].includes(error.code)) return {};
  return { [keyOfMessage(error.message)]: error.message };
}
