import { HandlerError, action, config, data, hook, subscription } from "@blockbase/sdk";

const input = {
  type: "object",
  properties: { name: { type: "string", minLength: 1, maxLength: 100 } },
  required: ["name"],
  additionalProperties: false,
};

action<{ name: string }>("greet", { description: "Greets somebody.", input }, ({ name }, context) => {
  if (name === "nobody") throw new HandlerError("not_found", "There is nobody to greet.");
  const { greeting } = config.get<{ greeting: string }>();
  return { message: `${greeting}, ${name}!`, by: context.actor?.userId ?? null };
});

hook("ping", { description: "Answers with what it was sent." }, (request) => {
  console.log("pinged by", request.remoteAddress);
  return { status: 200, body: { method: request.method, received: request.text() } };
});

// Removes blanks around the title of a new task. An event may be delivered twice. A second run changes nothing.
// Your `task` may have no `title`, or one that is not text. If a handler throws, the event is retried, and after the last attempt the
// delivery is dead.
subscription<{ id: string; after: { title?: unknown } }>("tidy_title", { event: "data.task.created", consumer: "{{name}}:titles" }, (event) => {
  const { id, after } = event.payload;
  if (typeof after.title !== "string" || after.title === after.title.trim()) return;
  try {
    data.update("task", id, { title: after.title.trim() });
  } catch (error) {
    // Only retry if a later attempt can succeed. The task may have been deleted, or a rule of the object may refuse the title.
    if (!(error instanceof HandlerError) || error.code === "unavailable") throw error;
    console.warn(`the title of ${id} stays:`, error.message);
  }
});
