// The error of a handler, and of the service's own operations.

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

/** Asks the host; its error result comes as a `HandlerError`. */
export function ask(call) {
  try {
    return call();
  } catch (error) {
    const said = error?.payload;
    if (typeof said?.code !== "string") throw error;
    throw new HandlerError(said.code, said.message, typeof said.details === "string" ? parsed(said.details) : undefined);
  }
}

/** An exception as the interface's error record. */
export function errorRecord(error) {
  if (error instanceof HandlerError) {
    const details = error.details === undefined ? null : JSON.stringify(error.details);
    return { code: String(error.code), message: String(error.message), details: details ?? null };
  }
  const message = error instanceof Error ? error.message || error.name : String(error);
  return { code: "action_failed", message, details: null };
}
