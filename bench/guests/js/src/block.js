// What the benchmark calls of a block in JavaScript.

import { action, data, http } from "@blockbase/sdk";

const text = (name) => ({ type: "object", properties: { [name]: { type: "string" } }, required: [name] });

action("echo", { description: "Answers with its input." }, (input) => input);

action("get", { description: "Answers with a task.", input: text("id") }, ({ id }) => data.get("task", id));

action("increase", { description: "Reads a task, and then increases its priority.", input: text("id") }, ({ id }) => {
  data.get("task", id);
  return data.update("task", id, { priority: { $inc: 1 } });
});

action("wait", { description: "Waits for the answer of whoever listens there.", input: text("url") }, ({ url }) => {
  return http.get(url).status;
});
