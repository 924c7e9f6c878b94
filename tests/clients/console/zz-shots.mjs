import { mkdirSync } from "node:fs";
import { admin, call, must, person, open, look, settled, until, problemsOf, hostile } from "./harness.mjs";
import { test } from "node:test";
const only = process.env.ONLY?.split(",");
let me;
const seen = [];
async function shot(name, path, prepare) {
  if (only && !only.some((each) => name.startsWith(each))) return;
  test(name, async () => {
    const page = await open(path, { as: me, expect: [/.*/] });
    page.setDefaultTimeout(8000);
    try { if (prepare) await prepare(page); await page.getByRole("heading", { level: 1 }).waitFor(); } catch (error) { console.log("PREPARE", name, error.message.split("\n").slice(0, 6).join("|")); }
    for (const theme of ["light", "dark"]) {
      try { await look(page, name, { themes: [theme] }); } catch (error) { console.log("LOOK", name, theme, error.message.slice(0, 1500)); }
    }
    const problems = page.console.problems; if (problems.length) console.log("PROBLEMS", name, problems);
  });
}
me = await admin();
await call(me, "POST", "/api/v1/objects", { name: "task", label: "Task", fields: [{ name: "title", type: "text" }, { name: "done", type: "boolean" }] });
const { data } = await must(me, "POST", "/api/v1/data/task", { title: "First" }).then((b) => ({ data: b.data ?? b }));
await must(me, "PATCH", `/api/v1/data/task/${data.id}`, { title: hostile.markup, done: true });
const users = await must(me, "GET", "/api/v1/users");
if (users.data.length < 2) { await person(me, "Rita Reader", [{ resource: "task", actions: ["read"], rowPolicy: "own" }]); for (const n of [hostile.rtl, "Bob Builder"]) await call(null, "POST", "/api/auth/sign-up/email", { name: n, email: `u${Math.random()}@example.com`, password: "correct horse battery" }); }
let hooks = (await must(me, "GET", "/api/v1/webhooks")).data;
if (hooks.length === 0) { await must(me, "POST", "/api/v1/webhooks", { name: "closed", url: "http://127.0.0.1:9/hook", topics: ["data.#", "webhook.#"], headers: { authorization: "x" } }); hooks = (await must(me, "GET", "/api/v1/webhooks")).data; await must(me, "POST", "/api/v1/data/task", { title: "Second" });
 await must(me, "POST", "/api/v1/events/subscriptions", { event: "data.#", consumer: "audit-log", handler: "log_event", config: {}, perInstance: false }); }
const roles = (await must(me, "GET", "/api/v1/roles")).data;
const role = roles.find((r) => r.name.startsWith("rita"));
if ((await must(me, "GET", "/api/v1/api-keys")).data.length === 0) await must(me, "POST", "/api/v1/api-keys", { name: "nightly import", roleId: role.id });
const all = (await must(me, "GET", "/api/v1/users")).data; const rita = all.find((u) => u.email.startsWith("rita"));
const tasks = (await must(me, "GET", "/api/v1/tasks")).data; await call(me, "POST", `/api/v1/tasks/${tasks[0].id}/run`);
console.log(JSON.stringify((await must(me, "GET", "/api/v1/events/deliveries?limit=2")).data), JSON.stringify(tasks[0]), JSON.stringify(role));
const ev = (await must(me, "GET", "/api/v1/events?limit=50")).data.find((e) => e.topic === "data.task.updated");
shot("events", "/admin/events");
shot("event-open", `/admin/events?open=${ev.id}`);
shot("deliveries", "/admin/deliveries");
shot("delivery-open", "/admin/deliveries", async (page) => { await page.getByRole("grid").or(page.getByRole("table")).first().waitFor(); await page.getByText("webhook:").first().click(); await page.getByText("Attempts").last().waitFor(); });
shot("webhooks", "/admin/webhooks");
shot("webhook-open", `/admin/webhooks?open=${hooks[0].id}`, async (page) => { await page.getByRole("button", { name: "Send test" }).click(); await page.getByText("The receiver's answer").or(page.getByLabel("The receiver's answer")).first().waitFor(); });
shot("webhook-new", "/admin/webhooks?new=true", async (page) => { await page.getByRole("button", { name: "Add header" }).click(); });
shot("webhook-verify", "/admin/webhooks?tab=verify");
shot("subs", "/admin/webhooks?tab=subscriptions&open=audit-log");
shot("sub-new", "/admin/webhooks?tab=subscriptions&new=true");
shot("users", "/admin/users");
shot("user-open", `/admin/users?open=${rita.id}`);
shot("roles", "/admin/roles");
shot("role-new", "/admin/roles?new=true");
shot("role-grid", `/admin/roles/${role.id}`);
shot("role-effective", `/admin/roles/${role.id}?tab=effective`);
shot("role-users", `/admin/roles/${role.id}?tab=users`);
shot("viewas", `/admin/roles/${role.id}`, async (page) => { await page.getByRole("button", { name: "View as this role" }).click(); await page.getByRole("button", { name: "Leave view" }).waitFor(); });
shot("keys", "/admin/keys");
shot("key-new", "/admin/keys?new=true");
shot("tasks", "/admin/tasks");
shot("task-open", `/admin/tasks?open=${tasks[0].id}`);
shot("task-new", "/admin/tasks?new=true");
shot("settings", "/admin/settings");
shot("settings-conf", "/admin/settings?tab=settings");
