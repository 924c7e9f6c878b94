// Whether a call is running. The code outside of handlers runs once, at the build, when there is no host.

let called = false;

export function isCalled() {
  return called;
}

export function beginCall() {
  called = true;
}
