import { HandlerError, action, config, data, hook, subscription } from "@blockbase/sdk";

interface Task {
  id: string;
  title: string;
}

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

// A new task gets a title without blanks around it. An event may come twice: doing it again changes nothing.
subscription<{ after: Task }>("tidy_title", { event: "data.task.created", consumer: "{{name}}:titles" }, (event) => {
  const { id, title } = event.payload.after;
  if (title !== title.trim()) data.update("task", id, { title: title.trim() });
});
