// Where GraphiQL keeps its tabs and its history: in this browser, but without the headers of what was run. They hold credentials,
// and GraphiQL leaves them out of tabs alone.

const PREFIX = "graphiql:";
const HISTORIES = [`${PREFIX}queries`, `${PREFIX}favorites`];

/** `null`, where the browser keeps nothing: GraphiQL does without. The origin's other pages keep theirs in the same place. */
export const storage = store() && {
  get length() {
    return keys().length;
  },
  clear: () => keys().forEach((key) => localStorage.removeItem(key)),
  getItem: (key) => localStorage.getItem(key),
  removeItem: (key) => localStorage.removeItem(key),
  setItem: (key, value) => localStorage.setItem(key, HISTORIES.includes(key) ? withoutHeaders(value) : value),
};

function keys() {
  return Object.keys(localStorage).filter((key) => key.startsWith(PREFIX));
}

function store() {
  try {
    return localStorage;
  } catch {
    return null;
  }
}

function withoutHeaders(history) {
  return JSON.stringify(JSON.parse(history), (name, value) => (name === "headers" ? undefined : value));
}
