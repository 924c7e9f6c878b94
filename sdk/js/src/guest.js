// The exports of the component. They are made from the handlers that the block declares.

import { console } from "./console.js";
import { HandlerError, errorRecord } from "./error.js";
import { sleep } from "./globals.js";
import { handlers } from "./handlers.js";
import { Message, lowered } from "./message.js";
import { beginCall, isCalled } from "./phase.js";
import { LostWork, dropWaiting, settle } from "./promise.js";
import { URLSearchParams } from "./query.js";

function report(kind, name, error) {
  try {
    console.error(`The ${kind} ${name} failed:`, error);
  } catch {
    // Even if the error cannot be printed, the call still returns an error.
  }
}

/** Runs a handler. Whatever it throws becomes the error result. An error that is not a `HandlerError` is written completely to the log. */
function run(kind, name, call) {
  // What an earlier call in this instance left must not run in this call. The first call runs what the build left.
  if (isCalled()) dropWaiting();
  beginCall();
  try {
    const handler = handlers[kind].get(name);
    if (handler === undefined) throw new HandlerError("not_found", `There is no ${kind} ${name}.`);
    return call(handler.run);
  } catch (error) {
    // The caller of a hook gets no details, so the error is always written to the log.
    if (!(error instanceof HandlerError) || kind === "hook") report(kind, name, error);
    // Without a payload the call traps, and the server drops the instance. In another one the promise can settle.
    if (error instanceof LostWork) throw error;
    // The component's runtime reads the error result from this key.
    throw { payload: errorRecord(error) };
  }
}

export const registry = {
  handlers() {
    return Object.entries(handlers).flatMap(([kind, named]) => Array.from(named.keys(), (name) => ({ name, kind })));
  },
};

export const actions = {
  call(context, name, input) {
    return run("action", name, (handle) => JSON.stringify(settle(handle(JSON.parse(input), context), sleep)) ?? "null");
  },
};

class Request extends Message {
  constructor(request) {
    super(request.headers, request.body);
    this.method = request.method;
    this.path = request.path;
    this.query = request.query;
    this.params = new URLSearchParams(request.query);
    this.remoteAddress = request.remoteAddress;
  }
}

function response(answer) {
  if (answer === undefined || answer === null) return null;
  const { status = 200, headers, body } = answer;
  if (!Number.isInteger(status) || status < 100 || status > 999) throw new TypeError(`${String(status)} is not a valid status of a response.`);
  const message = lowered(headers, body);
  return { status, headers: message.headers, body: message.body ?? new Uint8Array(0) };
}

export const hooks = {
  receive(context, name, request) {
    return run("hook", name, (handle) => response(settle(handle(new Request(request), context), sleep)));
  },
};

export const subscriptions = {
  deliver(context, name, event, config) {
    const whole = () => ({ ...event, payload: JSON.parse(event.payload) });
    run("subscription", name, (handle) => void settle(handle(whole(), JSON.parse(config), context), sleep));
  },
};

/** The entries of one kind for the manifest. `key` is the member that holds the handler's name. */
function described(kind, key) {
  return Array.from(handlers[kind], ([name, { options }]) => ({ ...options, [key]: name }));
}

export const describe = {
  manifest() {
    return JSON.stringify({
      actions: described("action", "name"),
      hooks: described("hook", "name"),
      subscriptions: described("subscription", "handler"),
    });
  },
};
