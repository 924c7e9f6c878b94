// The handlers that a block declares.

const NAME = /^[a-z][a-z0-9_]{0,47}$/;

/** For each kind, the handlers as `{ options, run }`, by name. */
export const handlers = { action: new Map(), hook: new Map(), subscription: new Map() };

function declare(kind, name, options, run) {
  if (typeof name !== "string" || !NAME.test(name)) {
    throw new TypeError(`${JSON.stringify(name)} is not a valid name of a handler. Use a small letter, then at most 47 small letters, digits or _.`);
  }
  if (typeof options === "function" && run === undefined) [options, run] = [{}, options];
  if (typeof run !== "function") throw new TypeError(`The ${kind} ${name} has no function.`);
  if (handlers[kind].has(name)) throw new TypeError(`The ${kind} ${name} is declared twice.`);
  handlers[kind].set(name, { options, run });
}

export const action = (name, options, run) => declare("action", name, options, run);
export const hook = (name, options, run) => declare("hook", name, options, run);
export const subscription = (name, options, run) => declare("subscription", name, options, run);
