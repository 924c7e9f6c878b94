// Parses the parameters of a query string or a form.

function decode(text) {
  text = text.replaceAll("+", " ");
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function encode(text) {
  return encodeURIComponent(text)
    .replace(/[!'()~]/g, (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`)
    .replaceAll("%20", "+");
}

export class URLSearchParams {
  #pairs = [];

  constructor(init = "") {
    if (typeof init === "object" && init !== null) {
      const pairs = typeof init[Symbol.iterator] === "function" ? init : Object.entries(init);
      for (const [name, value] of pairs) this.append(name, value);
      return;
    }
    for (const part of String(init).replace(/^\?/, "").split("&")) {
      if (part === "") continue;
      const equals = part.indexOf("=");
      const name = equals < 0 ? part : part.slice(0, equals);
      this.#pairs.push([decode(name), equals < 0 ? "" : decode(part.slice(equals + 1))]);
    }
  }

  get size() {
    return this.#pairs.length;
  }

  get(name) {
    return this.#pairs.find((pair) => pair[0] === String(name))?.[1] ?? null;
  }

  getAll(name) {
    return this.#pairs.filter((pair) => pair[0] === String(name)).map((pair) => pair[1]);
  }

  has(name) {
    return this.#pairs.some((pair) => pair[0] === String(name));
  }

  append(name, value) {
    this.#pairs.push([String(name), String(value)]);
  }

  set(name, value) {
    const first = this.#pairs.find((pair) => pair[0] === String(name));
    if (first === undefined) {
      this.append(name, value);
      return;
    }
    first[1] = String(value);
    this.#pairs = this.#pairs.filter((pair) => pair === first || pair[0] !== first[0]);
  }

  delete(name) {
    this.#pairs = this.#pairs.filter((pair) => pair[0] !== String(name));
  }

  sort() {
    this.#pairs.sort((a, b) => (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0));
  }

  forEach(callback, receiver) {
    for (const [name, value] of this.#pairs) callback.call(receiver, value, name, this);
  }

  *entries() {
    for (const [name, value] of this.#pairs) yield [name, value];
  }

  *keys() {
    for (const [name] of this.#pairs) yield name;
  }

  *values() {
    for (const [, value] of this.#pairs) yield value;
  }

  [Symbol.iterator]() {
    return this.entries();
  }

  toString() {
    return this.#pairs.map(([name, value]) => `${encode(name)}=${encode(value)}`).join("&");
  }
}
