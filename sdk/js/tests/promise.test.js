import assert from "node:assert/strict";
import { test } from "node:test";

import { LostWork, SyncPromise, dropWaiting, enqueue, settle, startTimer } from "../src/promise.js";

const never = () => assert.fail("nothing has to sleep");

test("a chain of promises settles within the call", () => {
  const order = [];
  const value = SyncPromise.resolve(1)
    .then((one) => {
      order.push("first");
      return new SyncPromise((resolve) => resolve(one + 1));
    })
    .then((two) => {
      order.push("second");
      throw new Error(`no ${two}`);
    })
    .catch((error) => error.message)
    .finally(() => order.push("last"));
  order.push("sync");
  assert.equal(settle(value, never), "no 2");
  assert.deepEqual(order, ["sync", "first", "second", "last"]);
});

test("a rejection is thrown, and what is no promise comes back", () => {
  assert.throws(() => settle(SyncPromise.reject(new Error("why")), never), /why/);
  assert.equal(settle(5, never), 5);
  assert.equal(settle({ then: (resolve) => resolve("thenable") }, never), "thenable");
});

test("jobs that nobody waits for run as well", () => {
  let ran = false;
  SyncPromise.resolve().then(() => (ran = true));
  settle(undefined, never);
  assert.equal(ran, true);
});

test("a promise that nothing settles is an error", () => {
  assert.throws(() => settle(new SyncPromise(() => {}), never), /nothing settles/);
});

test("combinators answer as the language says", () => {
  const error = new Error("e");
  const mixed = [1, SyncPromise.resolve(2), SyncPromise.reject(error)];
  assert.deepEqual(settle(SyncPromise.all([1, SyncPromise.resolve(2)]), never), [1, 2]);
  assert.deepEqual(settle(SyncPromise.all([]), never), []);
  assert.throws(() => settle(SyncPromise.all(mixed), never), error);
  assert.deepEqual(settle(SyncPromise.allSettled(mixed), never), [
    { status: "fulfilled", value: 1 },
    { status: "fulfilled", value: 2 },
    { status: "rejected", reason: error },
  ]);
  assert.equal(settle(SyncPromise.any([SyncPromise.reject(error), 3]), never), 3);
  assert.throws(() => settle(SyncPromise.any([SyncPromise.reject(error)]), never), AggregateError);
  assert.equal(settle(SyncPromise.race([SyncPromise.resolve("a"), "b"]), never), "a");
  assert.equal(settle(SyncPromise.try(() => 4), never), 4);
  assert.ok(SyncPromise.resolve() instanceof SyncPromise);
});

test("timers run in the order that they are due, and the call sleeps until then", (context) => {
  let now = 1000;
  context.mock.method(Date, "now", () => now);
  const order = [];
  const slept = [];
  const sleep = (milliseconds) => {
    slept.push(milliseconds);
    now += milliseconds;
  };
  startTimer(() => order.push("never"), 1e12);
  const value = new SyncPromise((resolve) => startTimer(() => resolve("late"), 20));
  startTimer(() => order.push("soon"), 5);
  assert.equal(settle(value, sleep), "late");
  assert.deepEqual([order, slept], [["soon"], [5, 15]]);
});

test("a value without a promise is returned as it is, once the jobs have run", () => {
  const ran = [];
  const value = { then: "no function" };
  enqueue(() => ran.push("job"));
  assert.equal(settle(value, never), value);
  assert.deepEqual(ran, ["job"]);
  const thenable = { then: (resolve) => resolve("settled") };
  assert.equal(settle(thenable, never), "settled");
  const unreadable = {
    get then() {
      throw new Error("unreadable");
    },
  };
  enqueue(() => ran.push("another job"));
  assert.throws(() => settle(unreadable, never), /unreadable/);
  assert.deepEqual(ran, ["job", "another job"]);
});

test("jobs and timers that are dropped do not run later", () => {
  const ran = [];
  startTimer(() => ran.push("timer"), 0);
  enqueue(() => ran.push("job"));
  enqueue(() => {
    throw new Error("job");
  });
  enqueue(() => ran.push("after the failure"));
  assert.throws(() => settle(undefined, never), /job/);
  dropWaiting();
  const value = new SyncPromise((resolve) => startTimer(() => resolve("done"), 0));
  assert.equal(settle(value, () => {}), "done");
  assert.deepEqual(ran, ["job"]);
});

test("a promise that only dropped work could settle is told apart", () => {
  const lost = new SyncPromise((resolve) => startTimer(resolve, 0));
  dropWaiting();
  assert.throws(() => settle(lost, never), LostWork);
});
