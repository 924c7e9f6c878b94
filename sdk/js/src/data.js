// Records, as `data` of the block interface has them, with JSON read and written.

import * as records from "blockbase:block/data@0.1.0";

import { host } from "./host.js";

export function query(object, query = {}) {
  return JSON.parse(host("data.query", () => records.query(object, JSON.stringify(query))));
}

export function get(object, id, options) {
  let text = null;
  if (options !== undefined) {
    const { expand, ...others } = options;
    text = JSON.stringify({ ...others, expand: Array.isArray(expand) ? expand.join(",") : expand });
  }
  const record = host("data.get", () => records.get(object, id, text));
  return record === null || record === undefined ? null : JSON.parse(record);
}

export function aggregate(object, query) {
  return JSON.parse(host("data.aggregate", () => records.aggregate(object, JSON.stringify(query))));
}

export function create(object, values) {
  return JSON.parse(host("data.create", () => records.create(object, JSON.stringify(values))));
}

export function createMany(object, values) {
  return JSON.parse(host("data.createMany", () => records.createMany(object, JSON.stringify(values)))).ids;
}

export function update(object, id, changes) {
  return JSON.parse(host("data.update", () => records.update(object, id, JSON.stringify(changes))));
}

export function upsert(object, values, onConflict) {
  return JSON.parse(host("data.upsert", () => records.upsert(object, JSON.stringify(values), onConflict)));
}

function remove(object, id) {
  return host("data.delete", () => records.delete(object, id));
}
export { remove as delete };

export function deleteMany(object, ids) {
  return host("data.deleteMany", () => records.deleteMany(object, ids));
}

export function link(object, id, relation, ids) {
  return host("data.link", () => records.link(object, id, relation, ids));
}

export function unlink(object, id, relation, ids) {
  return host("data.unlink", () => records.unlink(object, id, relation, ids));
}

export function batch(operations) {
  return JSON.parse(host("data.batch", () => records.batch(JSON.stringify(operations))));
}
