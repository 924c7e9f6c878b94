// Whether a call is under way. The code outside of handlers runs once, at the build, when there is no host to ask.

let called = false;

export function isCalled() {
  return called;
}

export function beginCall() {
  called = true;
}
