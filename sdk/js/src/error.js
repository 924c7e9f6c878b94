// The error of a handler and of the service's own operations.

export class HandlerError extends Error {
  constructor(code, message, details) {
    super(message);
    this.name = "HandlerError";
    this.code = code;
    this.details = details;
  }
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** Calls the host. An error result is thrown as a `HandlerError`. */
export function ask(call) {
  try {
    return call();
  } catch (error) {
    const said = error?.payload;
    if (typeof said?.code !== "string") throw error;
    throw new HandlerError(said.code, said.message, typeof said.details === "string" ? parsed(said.details) : undefined);
  }
}

function written(details) {
  try {
    return JSON.stringify(details) ?? null;
  } catch {
    return null;
  }
}

/** Converts an exception to the interface's error record. It never throws, whatever the exception is. */
export function errorRecord(error) {
  if (error instanceof HandlerError) {
    return { code: `${error.code}`.toWellFormed(), message: `${error.message}`.toWellFormed(), details: written(error.details) };
  }
  let message;
  try {
    message = error instanceof Error ? error.message || error.name : String(error);
  } catch {
    message = "The handler threw what has no text.";
  }
  return { code: "action_failed", message: String(message).toWellFormed(), details: null };
}
