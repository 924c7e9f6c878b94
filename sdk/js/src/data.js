// Access to records, through `data` of the block interface. This file parses and prints the JSON.

import * as records from "blockbase:block/data@0.1.0";

import { host, json, text, texts } from "./host.js";

const objectName = (object) => text("The name of the object", object);
const recordId = (id) => text("The id of a record", id);
const relationKey = (relation) => text("The key of a relation", relation);

/** Calls a host function that returns JSON. */
function askJson(name, call) {
  return JSON.parse(host(name, call));
}

export function query(object, query = {}) {
  return askJson("data.query", () => records.query(objectName(object), json("The query", query)));
}

export function get(object, id, options) {
  let written = null;
  if (options !== undefined) {
    const { expand, ...others } = options;
    written = json("The options", { ...others, expand: Array.isArray(expand) ? expand.join(",") : expand });
  }
  const record = host("data.get", () => records.get(objectName(object), recordId(id), written));
  return record === null || record === undefined ? null : JSON.parse(record);
}

export function aggregate(object, query) {
  return askJson("data.aggregate", () => records.aggregate(objectName(object), json("The query", query)));
}

export function create(object, values) {
  return askJson("data.create", () => records.create(objectName(object), json("The record", values)));
}

export function createMany(object, values) {
  return askJson("data.createMany", () => records.createMany(objectName(object), json("The records", values))).ids;
}

export function update(object, id, changes) {
  return askJson("data.update", () => records.update(objectName(object), recordId(id), json("The changes", changes)));
}

export function upsert(object, values, onConflict) {
  const target = texts("The fields", onConflict);
  return askJson("data.upsert", () => records.upsert(objectName(object), json("The record", values), target));
}

function remove(object, id) {
  return host("data.delete", () => records.delete(objectName(object), recordId(id)));
}
export { remove as delete };

export function deleteMany(object, ids) {
  return host("data.deleteMany", () => records.deleteMany(objectName(object), texts("The ids", ids)));
}

export function link(object, id, relation, ids) {
  return host("data.link", () => records.link(objectName(object), recordId(id), relationKey(relation), texts("The ids", ids)));
}

export function unlink(object, id, relation, ids) {
  return host("data.unlink", () => records.unlink(objectName(object), recordId(id), relationKey(relation), texts("The ids", ids)));
}

export function batch(operations) {
  return askJson("data.batch", () => records.batch(json("The operations", operations)));
}
