// How people get in: the form of a new user, the links that set a password and confirm an address, and where somebody is signed in.
import assert from "node:assert/strict";
import { test } from "node:test";
import { bundled } from "./bundled.mjs";

const { EMPTY, bodyOf, handedOver, isTyped, problemsOf } = await bundled("screens/users/new-user.ts");
const { calledOf, canBeGiven } = await bundled("screens/users/users.ts");
const { readUsersSearch } = await bundled("screens/users/search.ts");
const { linkToken, takeLinkToken, tokenIn } = await bundled("app/gate/link-token.ts");
const { forgetRefusedLink, linkIsRefused, takeRefusedLink } = await bundled("app/gate/refused-link.ts");
const { MAIL, nameOf, webhookOf } = await bundled("screens/deliveries/consumers.ts");
const { describeAgent } = await bundled("screens/account/agent.ts");
const { ApiError } = await bundled("api/errors.ts");

test("a new user is sent without what is empty, and without spaces around", () => {
  assert.deepEqual(bodyOf({ email: " ina@example.com ", name: "  ", roles: [] }), { email: "ina@example.com" });
  assert.deepEqual(bodyOf({ email: "ina@example.com", name: " Ina ", roles: ["r1", "r2"] }), { email: "ina@example.com", name: "Ina", roles: ["r1", "r2"] });
  assert.equal(isTyped(EMPTY), false);
  assert.equal(isTyped({ ...EMPTY, roles: ["r1"] }), true);
});

test("what the server refuses of a new user stands at its field", () => {
  const refused = (status, details = {}, code = "bad_request") => problemsOf(new ApiError(status, code, "The server's sentence.", details));
  assert.deepEqual(problemsOf(null), {});
  assert.deepEqual(refused(400, { field: "email" }), { email: "The server's sentence." });
  // One of several roles.
  for (const field of ["roles", "roles[1]", "roles.1", "/roles/1"]) assert.deepEqual(refused(400, { field }), { roles: "The server's sentence." });
  assert.deepEqual(refused(400, { issues: [{ path: "email", message: "Not an address." }, { path: "name", message: "Too long." }] }), { email: "Not an address.", name: "Too long." });
  // A taken address is a conflict, whether the server names the field or not.
  assert.deepEqual(refused(409, {}, "conflict"), { email: "The server's sentence." });
  assert.deepEqual(refused(409, { field: "email" }, "conflict"), { email: "The server's sentence." });
  // What is about no field is shown above the form.
  for (const [status, details] of [[403, {}], [400, { field: "body" }], [409, { field: "body" }], [500, {}], [0, {}]]) assert.deepEqual(refused(status, details), {});
});

test("a user without a name is called by the address, and a guest is a guest", () => {
  const user = { name: "", email: "ina@example.com", isAnonymous: false };
  assert.deepEqual([calledOf({ ...user, name: "Ina" }), calledOf(user), calledOf({ ...user, isAnonymous: true })], ["Ina", "ina@example.com", "this guest"]);
});

test("a user is called by what this person may read of them", () => {
  const called = [{}, { name: null, email: null }, { name: null, email: "ina@example.com" }, { name: "Ina", email: null }].map(calledOf);
  assert.deepEqual(called, ["this user", "this user", "ina@example.com", "Ina"]);
});

test("roles that everybody has are not given", () => {
  assert.deepEqual(["admin", "public", "anonymous", "writers"].filter((name) => canBeGiven({ name })), ["admin", "writers"]);
});

test("the form of a new user has an address", () => {
  assert.deepEqual(readUsersSearch({ new: true, q: "ina" }), { new: true, q: "ina" });
  assert.deepEqual(readUsersSearch({ new: "no" }), {});
});

test("a token is read from a fragment", () => {
  assert.equal(tokenIn("#token=abc-_123"), "abc-_123");
  assert.equal(tokenIn("#x=1&token=abc"), "abc");
  for (const fragment of ["", "#", "#token", "#token=", "#content"]) assert.equal(tokenIn(fragment), null);
});

test("the link of a password leaves the address bar, and its token is kept until another link is opened", () => {
  const replaced = [];
  const visit = (pathname, hash, search = "") =>
    takeLinkToken({ location: { pathname, search, hash }, history: { state: { key: "k" }, replaceState: (...all) => replaced.push(all) } });
  visit("/admin/set-password", "#token=first", "?x=1");
  assert.equal(linkToken(), "first");
  assert.deepEqual(replaced, [[{ key: "k" }, "", "/admin/set-password?x=1"]]);
  // The address that is left of it, and fragments of other pages, change nothing.
  visit("/admin/set-password", "");
  visit("/admin/users", "#token=other");
  assert.equal(linkToken(), "first");
  assert.equal(replaced.length, 1);
  visit("/admin/set-password/", "#token=second");
  assert.equal(linkToken(), "second");
  // Half a link is none.
  visit("/admin/set-password", "#token=");
  assert.equal(linkToken(), null);
  assert.equal(replaced.length, 3);
});

test("a link that is not valid is noted once, and leaves the address bar", () => {
  const replaced = [];
  const visit = (pathname, search, hash = "") =>
    takeRefusedLink({ location: { pathname, search, hash }, history: { state: { key: "k" }, replaceState: (...all) => replaced.push(all) } });
  // Other errors, and other pages, are left alone.
  visit("/admin", "?error=other");
  visit("/admin", "");
  visit("/admin/data/error", "?error=INVALID_TOKEN");
  assert.deepEqual([linkIsRefused(), replaced], [false, []]);
  visit("/admin", "?error=INVALID_TOKEN");
  assert.equal(linkIsRefused(), true);
  forgetRefusedLink();
  assert.equal(linkIsRefused(), false);
  visit("/admin/account", "?x=1&error=INVALID_TOKEN", "#y");
  assert.equal(linkIsRefused(), true);
  assert.deepEqual(replaced, [[{ key: "k" }, "", "/admin"], [{ key: "k" }, "", "/admin/account?x=1#y"]]);
});

test("a link that is shown and not mailed says why", () => {
  assert.equal(handedOver(false), "This server sends no mail (`SVC_SMTP_URL`), so hand the link over yourself.");
  assert.match(handedOver(true), /as many mails as it may have in an hour, so hand the link over yourself\.$/);
});

test("consumers are called by what they are", () => {
  const webhooks = [{ id: "w1", name: "Slack", url: "https://a.example" }, { id: "w2", name: null, url: "https://b.example" }];
  assert.deepEqual(["webhook:w1", "webhook:w2", "webhook:w3", MAIL, "the-log"].map((consumer) => nameOf(consumer, webhooks)), ["Slack", "https://b.example", "webhook:w3", "Mail", "the-log"]);
  assert.equal(nameOf("svc:mail", undefined), "Mail");
  assert.deepEqual([webhookOf("webhook:w1"), webhookOf("svc:mail")], ["w1", undefined]);
});

test("a session is known by the browser and the system", () => {
  const chrome = "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36";
  const cases = [
    [chrome, "Chrome on Windows"],
    [`${chrome} Edg/140.0.0.0`, "Edge on Windows"],
    ["Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Firefox on Linux"],
    ["Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/18.0 Mobile/15E148 Safari/604.1", "Safari on iOS"],
    ["Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Mobile Safari/537.36", "Chrome on Android"],
    ["curl/8.14.1", "curl/8.14.1"],
    ["x".repeat(100), "x".repeat(60)],
    ["", "Unknown program"],
    [null, "Unknown program"],
  ];
  for (const [agent, shown] of cases) assert.equal(describeAgent(agent), shown);
});
