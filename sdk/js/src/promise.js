// Promises whose jobs the SDK runs itself. A call into a component is synchronous, and the engine runs no jobs during a call. Its own
// promises would settle only after the call has returned. The build compiles `async` functions to generators that use this class.

const PENDING = 0;
const FULFILLED = 1;
const REJECTED = 2;
/** Longer than any call can take. */
const DELAY_MS_MAX = 2 ** 31 - 1;

/** The waiting jobs, and the index of the next one. */
let jobs = [];
let next = 0;
/** All timers as `{ id, due, run }`. The earliest one is first. */
const timers = [];
let timerIds = 0;

export function enqueue(job) {
  jobs.push(job);
}

function runJobs() {
  while (next < jobs.length) {
    const job = jobs[next++];
    job();
  }
  jobs = [];
  next = 0;
}

/** Whether jobs or timers were dropped. A promise that needs one of them never settles. */
let hasDropped = false;

/** The handler waits for a promise that only dropped work could have settled. */
export class LostWork extends Error {}

/** Drops the jobs and timers that wait. */
export function dropWaiting() {
  hasDropped ||= next < jobs.length || timers.length > 0;
  jobs = [];
  next = 0;
  timers.length = 0;
}

/** Calls `run` after `delayMs` milliseconds. */
export function startTimer(run, delayMs) {
  const timer = { id: ++timerIds, due: Date.now() + Math.min(Math.max(0, Number(delayMs) || 0), DELAY_MS_MAX), run };
  const later = timers.findIndex((other) => other.due > timer.due);
  timers.splice(later < 0 ? timers.length : later, 0, timer);
  return timer.id;
}

export function stopTimer(id) {
  const index = timers.findIndex((timer) => timer.id === id);
  if (index >= 0) timers.splice(index, 1);
}

/** Waits for the next timer and runs it. Returns false if there is none. */
function runNextTimer(sleep) {
  const timer = timers.shift();
  if (timer === undefined) return false;
  const waitMs = timer.due - Date.now();
  if (waitMs > 0) sleep(waitMs);
  timer.run();
  return true;
}

/** Whether a promise that is resolved with the value asks the value for its outcome. True if the value does not even let this be read. */
function mayBeThenable(value) {
  try {
    return isObject(value) && typeof value.then === "function";
  } catch {
    return true;
  }
}

/**
 * Returns the result of a handler: its value, or the value with which its promise settles. All jobs have run when this returns. Timers that
 * the promise does not need may not have run.
 */
export function settle(value, sleep) {
  // Most handlers return no promise. Then none is made, which costs the engine dozens of objects.
  if (!mayBeThenable(value)) {
    runJobs();
    return value;
  }
  const promise = SyncPromise.resolve(value);
  runJobs();
  while (promise._state === PENDING) {
    if (!runNextTimer(sleep)) throw new (hasDropped ? LostWork : Error)("The handler waits for a promise that nothing settles.");
    runJobs();
  }
  if (promise._state === REJECTED) throw promise._value;
  return promise._value;
}

function isObject(value) {
  return (typeof value === "object" && value !== null) || typeof value === "function";
}

function settleAs(promise, state, value) {
  promise._state = state;
  promise._value = value;
  const reactions = promise._reactions;
  promise._reactions = undefined;
  for (const reaction of reactions) schedule(promise, reaction);
}

function schedule(promise, reaction) {
  enqueue(() => {
    const handler = promise._state === FULFILLED ? reaction.fulfilled : reaction.rejected;
    if (typeof handler !== "function") {
      if (promise._state === FULFILLED) reaction.resolve(promise._value);
      else reaction.reject(promise._value);
      return;
    }
    let result;
    try {
      result = handler(promise._value);
    } catch (error) {
      reaction.reject(error);
      return;
    }
    reaction.resolve(result);
  });
}

/** The two functions that settle a promise. Only the first call has an effect. */
function resolvers(promise) {
  let called = false;
  const reject = (reason) => {
    if (called) return;
    called = true;
    settleAs(promise, REJECTED, reason);
  };
  const resolve = (value) => {
    if (called) return;
    called = true;
    if (value === promise) {
      settleAs(promise, REJECTED, new TypeError("A promise cannot be resolved with itself."));
      return;
    }
    if (!isObject(value)) {
      settleAs(promise, FULFILLED, value);
      return;
    }
    let then;
    try {
      then = value.then;
    } catch (error) {
      settleAs(promise, REJECTED, error);
      return;
    }
    if (typeof then !== "function") {
      settleAs(promise, FULFILLED, value);
      return;
    }
    enqueue(() => {
      const inner = resolvers(promise);
      try {
        then.call(value, inner.resolve, inner.reject);
      } catch (error) {
        inner.reject(error);
      }
    });
  };
  return { resolve, reject };
}

export class SyncPromise {
  constructor(executor) {
    if (typeof executor !== "function") throw new TypeError("A promise needs a function.");
    Object.defineProperties(this, {
      _state: { value: PENDING, writable: true },
      _value: { value: undefined, writable: true },
      _reactions: { value: [], writable: true },
    });
    const { resolve, reject } = resolvers(this);
    try {
      executor(resolve, reject);
    } catch (error) {
      reject(error);
    }
  }

  then(fulfilled, rejected) {
    const Species = this.constructor?.[Symbol.species] ?? SyncPromise;
    const { promise, resolve, reject } = capability(Species);
    const reaction = { fulfilled, rejected, resolve, reject };
    if (this._state === PENDING) this._reactions.push(reaction);
    else schedule(this, reaction);
    return promise;
  }

  catch(rejected) {
    return this.then(undefined, rejected);
  }

  finally(callback) {
    if (typeof callback !== "function") return this.then(callback, callback);
    const Species = this.constructor?.[Symbol.species] ?? SyncPromise;
    return this.then(
      (value) => Species.resolve(callback()).then(() => value),
      (reason) =>
        Species.resolve(callback()).then(() => {
          throw reason;
        }),
    );
  }

  static get [Symbol.species]() {
    return this;
  }

  static withResolvers() {
    return capability(this);
  }

  static resolve(value) {
    if (value instanceof SyncPromise && value.constructor === this) return value;
    const { promise, resolve } = capability(this);
    resolve(value);
    return promise;
  }

  static reject(reason) {
    const { promise, reject } = capability(this);
    reject(reason);
    return promise;
  }

  static try(callback, ...args) {
    return new this((resolve) => resolve(callback(...args)));
  }

  static all(values) {
    return gather(this, values, (promise, index, results, done, resolve, reject) =>
      promise.then((value) => {
        results[index] = value;
        done();
      }, reject),
    );
  }

  static allSettled(values) {
    return gather(this, values, (promise, index, results, done) =>
      promise.then(
        (value) => {
          results[index] = { status: "fulfilled", value };
          done();
        },
        (reason) => {
          results[index] = { status: "rejected", reason };
          done();
        },
      ),
    );
  }

  static any(values) {
    return new this((resolve, reject) => {
      gather(this, values, (promise, index, errors, done) =>
        promise.then(resolve, (error) => {
          errors[index] = error;
          done();
        }),
      ).then((errors) => reject(new AggregateError(errors, "All promises were rejected.")), reject);
    });
  }

  static race(values) {
    return new this((resolve, reject) => {
      for (const value of values) this.resolve(value).then(resolve, reject);
    });
  }
}

Object.defineProperty(SyncPromise.prototype, Symbol.toStringTag, { value: "Promise", configurable: true });
Object.defineProperty(SyncPromise, "name", { value: "Promise", configurable: true });

function capability(Constructor) {
  let resolve;
  let reject;
  const promise = new Constructor((resolveIt, rejectIt) => {
    resolve = resolveIt;
    reject = rejectIt;
  });
  return { promise, resolve, reject };
}

/** Waits for all values. For each value, `react` gets it and calls `done` once. */
function gather(Constructor, values, react) {
  return new Constructor((resolve, reject) => {
    const results = [];
    let left = 1;
    let index = 0;
    const done = () => {
      left -= 1;
      if (left === 0) resolve(results);
    };
    for (const value of values) {
      left += 1;
      react(Constructor.resolve(value), index, results, done, resolve, reject);
      index += 1;
    }
    done();
  });
}
