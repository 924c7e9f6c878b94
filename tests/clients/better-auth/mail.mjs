// Tests a server that sends mail, with the unmodified better-auth client.
// Usage: node mail.mjs <base_url> <log> | node mail.mjs <base_url> <log> <token of a session that is older than a day>
//
// The server needs SVC_MAIL_LOG, SVC_LOG_FORMAT=json, SVC_REQUIRE_EMAIL_VERIFICATION, SVC_DELETE_USER and SVC_ANONYMOUS_AUTH. `log` is its
// log file. The first run prints a line `token <token>` for the second run.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { request } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import {
  assertSignedOut,
  base,
  bearerClient,
  credentials,
  currentSession,
  newAccount,
  newBrowser,
  newPassword,
  newSignedInBrowser,
  refused,
  signIn,
  signInGuest,
  signUp,
  step,
  succeeded,
  tokenIsDead,
} from "./browser.mjs";

const MAIL_WAIT_MS = 60_000;
const [, , , logFile, oldToken] = process.argv;
if (!logFile) throw new Error("usage: node mail.mjs <base_url> <log> [<token>]");

// ---- mail ----------------------------------------------------------------

/** The number of mails that were read, by address. */
const mailsRead = new Map();

function mailsTo(address) {
  // The last line may not be complete yet.
  const lines = readFileSync(logFile, "utf8").split("\n").slice(0, -1);
  const fields = lines.map((line) => JSON.parse(line).fields ?? {});
  return fields.filter((each) => each["mail.to"] === address).map((each) => each.message);
}

/** Waits for the next mail to an address. */
async function nextMail(address) {
  const count = (mailsRead.get(address) ?? 0) + 1;
  mailsRead.set(address, count);
  for (const deadline = Date.now() + MAIL_WAIT_MS; ; await sleep(20)) {
    const mails = mailsTo(address);
    if (mails.length >= count) return mails[count - 1];
    assert.ok(Date.now() < deadline, `no mail to ${address}`);
  }
}

/** The link of the next mail, and its token. */
async function nextLink(address) {
  const text = await nextMail(address);
  const url = new URL(text.match(/https?:\S+/)[0]);
  assert.equal(url.origin, base.origin);
  const inPath = url.pathname.match(/\/reset-password\/(.+)$/)?.[1];
  const inHash = url.hash.match(/^#token=(.+)$/)?.[1];
  return { url, token: url.searchParams.get("token") ?? inPath ?? inHash };
}

/** Opens a link and returns the address to which it redirects. */
async function open({ jar }, { url }) {
  const response = await fetch(url, { headers: jar.header() ? { cookie: jar.header() } : {}, redirect: "manual" });
  jar.store(response);
  assert.equal(response.status, 302, await response.text());
  return response.headers.get("location");
}

/** Opens a page like a browser. `fetch` would send headers that show that a script sends the request. */
function navigate(method, url) {
  return new Promise((resolve, reject) => {
    const sent = request(url, { method, headers: { "sec-fetch-mode": "navigate" } }, (response) => {
      const chunks = [];
      response.on("data", (chunk) => chunks.push(chunk));
      response.on("end", () => resolve({ status: response.statusCode, headers: response.headers, text: chunks.join("") }));
    });
    sent.on("error", reject);
    sent.end();
  });
}

const credentialsOf = (account, password) => credentials({ ...account, password });

/** A browser of a person who has signed up and confirmed the address. */
async function newProvedUser() {
  const [browser, account] = [newBrowser(), newAccount()];
  await signUp(browser, account);
  const { token } = await nextLink(account.email);
  succeeded(await browser.client.verifyEmail({ query: { token } }));
  const { session, user } = await currentSession(browser);
  return { ...browser, account, user, token: session.token };
}

// ---- verification ----------------------------------------------------------

async function verificationSteps() {
  const [browser, account] = [newBrowser(), newAccount()];

  await step("sign up, and wait for the proof of the address", async () => {
    const { token, user } = succeeded(await browser.client.signUp.email({ ...account, callbackURL: "/welcome" }));
    assert.equal(token, null);
    assert.equal(user.email, account.email);
    assert.equal(user.emailVerified, false);
    await assertSignedOut(browser);
    assert.equal((await nextLink(account.email)).url.searchParams.get("callbackURL"), "/welcome");
  });

  await step("sign up with the address again", async () => {
    const other = newBrowser();
    const again = { name: "Other", email: account.email.toUpperCase(), password: newPassword() };
    const { token, user } = succeeded(await other.client.signUp.email(again));
    assert.equal(token, null);
    assert.equal(user.name, "Other");
    refused(await other.client.signIn.email(credentialsOf(account, again.password)), 401, "INVALID_EMAIL_OR_PASSWORD");
    await nextMail(account.email);
  });

  await step("sign in before the address is proved", async () => {
    refused(await browser.client.signIn.email(credentials(account)), 403, "EMAIL_NOT_VERIFIED");
    await nextMail(account.email);
    await assertSignedOut(browser);
  });

  await step("prove the address in the browser that signed up", async () => {
    const asked = await browser.client.sendVerificationEmail({ email: account.email, callbackURL: "/welcome?step=2" });
    assert.equal(succeeded(asked).status, true);
    const link = await nextLink(account.email);
    assert.equal(await open(browser, link), "/welcome?step=2");
    const { user } = await currentSession(browser);
    assert.equal(user.email, account.email);
    assert.equal(user.emailVerified, true);
    refused(await browser.client.verifyEmail({ query: { token: link.token } }), 401, "INVALID_TOKEN");
    await signIn(newBrowser(), account);
  });

  await step("ask for another proof", async () => {
    refused(await browser.client.sendVerificationEmail({ email: account.email }), 400, "EMAIL_ALREADY_VERIFIED");
    refused(await browser.client.sendVerificationEmail({ email: newAccount().email }), 400, "EMAIL_MISMATCH");
    succeeded(await newBrowser().client.sendVerificationEmail({ email: newAccount().email }));
  });

  await step("a link that is opened in another browser asks first", async () => {
    const other = newAccount();
    await signUp(browser, other);
    const { url } = await nextLink(other.email);
    const asked = await navigate("GET", url);
    assert.equal(asked.status, 200);
    assert.ok(asked.text.includes(other.email));
    refused(await newBrowser().client.signIn.email(credentials(other)), 403, "EMAIL_NOT_VERIFIED");
    const confirmed = await navigate("POST", url);
    assert.equal(confirmed.status, 303);
    assert.equal(confirmed.headers.location, "/");
    refused(await newBrowser().client.signIn.email(credentials(other)), 401, "INVALID_EMAIL_OR_PASSWORD");
  });

  await step("prove the address with the client's own call", async () => {
    const { user } = await newProvedUser();
    assert.equal(user.emailVerified, true);
  });
}

async function guestSteps() {
  const [browser, account] = [newBrowser(), newAccount()];

  await step("a guest stays a guest until the address is proved", async () => {
    const guest = await signInGuest(browser);
    assert.equal((await signUp(browser, account)).token, null);
    assert.equal((await currentSession(browser)).user.id, guest.user.id);
    assert.equal(await open(browser, await nextLink(account.email)), "/");
    const { user } = await currentSession(browser);
    assert.notEqual(user.id, guest.user.id);
    assert.equal(user.email, account.email);
    assert.equal(user.isAnonymous, false);
    await tokenIsDead(guest.token);
  });
}

// ---- passwords -------------------------------------------------------------

async function resetSteps() {
  const { account, ...browser } = await newProvedUser();
  const stranger = newBrowser();
  const forgot = async (more) => succeeded(await stranger.client.requestPasswordReset({ email: account.email, ...more }));

  await step("ask for a reset, with a known address and an unknown one", async () => {
    const known = await forgot();
    assert.deepEqual(known, succeeded(await stranger.client.requestPasswordReset({ email: newAccount().email })));
    assert.equal(known.status, true);
    assert.equal((await nextLink(account.email)).url.pathname, "/admin/set-password");
    const foreign = await stranger.client.requestPasswordReset({ email: account.email, redirectTo: "https://foreign.example.net/" });
    refused(foreign, 403, "INVALID_REDIRECT_URL");
  });

  await step("set another password with the link", async () => {
    await forgot({ redirectTo: "/reset?step=2" });
    const link = await nextLink(account.email);
    assert.equal(await open(stranger, link), `/reset?step=2&token=${link.token}`);
    refused(await stranger.client.resetPassword({ newPassword: "short", token: link.token }), 400, "PASSWORD_TOO_SHORT");
    const changed = newPassword();
    assert.equal(succeeded(await stranger.client.resetPassword({ newPassword: changed, token: link.token })).status, true);
    refused(await stranger.client.resetPassword({ newPassword: changed, token: link.token }), 400, "INVALID_TOKEN");
    assert.equal(await open(stranger, link), "/reset?step=2&error=INVALID_TOKEN");
    await assertSignedOut(browser);
    refused(await stranger.client.signIn.email(credentials(account)), 401, "INVALID_EMAIL_OR_PASSWORD");
    account.password = changed;
    await signIn(browser, account);
  });

  await step("check the own password", async () => {
    assert.equal(succeeded(await browser.client.verifyPassword({ password: account.password })).status, true);
    refused(await browser.client.verifyPassword({ password: newPassword() }), 400, "INVALID_PASSWORD");
    refused(await stranger.client.verifyPassword({ password: account.password }), 401, "UNAUTHORIZED");
  });

  await step("end sessions", async () => {
    const [second, third] = [await newSignedInBrowser(account), await newSignedInBrowser(account)];
    assert.equal(succeeded(await browser.client.listSessions()).length, 3);
    assert.equal(succeeded(await browser.client.revokeSession({ token: second.token })).status, true);
    await assertSignedOut(second);
    assert.equal(succeeded(await browser.client.revokeOtherSessions()).status, true);
    await assertSignedOut(third);
    assert.equal(succeeded(await browser.client.revokeSessions()).status, true);
    await assertSignedOut(browser);
  });
}

// ---- the address -------------------------------------------------------------

async function addressSteps() {
  const { account, user, ...browser } = await newProvedUser();
  const earlier = account.email;
  const { email } = newAccount();

  await step("ask for another address", async () => {
    refused(await browser.client.changeEmail({ newEmail: earlier.toUpperCase() }), 400, "EMAIL_IS_THE_SAME");
    refused(await newBrowser().client.changeEmail({ newEmail: email }), 401, "UNAUTHORIZED");
    assert.equal(succeeded(await browser.client.changeEmail({ newEmail: email, callbackURL: "/account" })).status, true);
    assert.equal((await currentSession(browser)).user.email, earlier);
  });

  await step("the new address confirms in a browser of the account", async () => {
    const link = await nextLink(email);
    refused(await newBrowser().client.verifyEmail({ query: { token: link.token } }), 401, "INVALID_USER");
    assert.equal(await open(newBrowser(), link), "/account?error=INVALID_USER");
    assert.equal(await open(browser, link), "/account");
    assert.equal((await currentSession(browser)).user.email, email);
    assert.ok(!(await nextMail(earlier)).includes("http"), "the earlier address is told, without a link");
    refused(await newBrowser().client.signIn.email(credentials(account)), 401, "INVALID_EMAIL_OR_PASSWORD");
    await newSignedInBrowser({ ...account, email });
  });

  await step("the client's own call changes the address, too", async () => {
    const further = newAccount().email;
    succeeded(await browser.client.changeEmail({ newEmail: further }));
    const { token } = await nextLink(further);
    const changed = succeeded(await browser.client.verifyEmail({ query: { token } }));
    assert.equal(changed.user.id, user.id);
    assert.equal(changed.user.email, further);
  });
}

// ---- deletion ----------------------------------------------------------------

async function deletionSteps() {
  await step("delete the account with the password", async () => {
    const { account, ...browser } = await newProvedUser();
    const other = await newSignedInBrowser(account);
    refused(await browser.client.deleteUser({ password: newPassword() }), 400, "INVALID_PASSWORD");
    const gone = succeeded(await browser.client.deleteUser({ password: account.password }));
    assert.deepEqual(gone, { success: true, message: "User deleted" });
    assert.equal(browser.jar.session(), undefined, "the cookie is cleared");
    await assertSignedOut(other);
    refused(await newBrowser().client.signIn.email(credentials(account)), 401, "INVALID_EMAIL_OR_PASSWORD");
  });

  await step("delete the account with a new session", async () => {
    const { token, ...browser } = await newProvedUser();
    assert.equal(succeeded(await browser.client.deleteUser()).message, "User deleted");
    await tokenIsDead(token);
  });

  await step("an unknown token deletes nothing", async () => {
    const browser = await newProvedUser();
    refused(await browser.client.deleteUser({ token: "unknown" }), 404, "INVALID_TOKEN");
    assert.ok(await currentSession(browser));
    // The next run of this program deletes the account.
    console.log(`token ${browser.token}`);
  });
}

async function deletionByLinkSteps(token) {
  const client = bearerClient(token);

  await step("an old session gets a link that deletes the account", async () => {
    const { user } = succeeded(await client.getSession());
    const asked = succeeded(await client.deleteUser({ callbackURL: "/goodbye" }));
    assert.deepEqual(asked, { success: true, message: "Verification email sent" });
    const link = await nextLink(user.email);
    assert.equal(link.url.searchParams.get("callbackURL"), "/goodbye");
    const query = { token: link.token };
    refused(await newBrowser().client.deleteUser.callback({ query }), 404, "FAILED_TO_GET_USER_INFO");
    assert.equal((await client.getSession()).data.user.id, user.id);
    assert.equal(succeeded(await client.deleteUser.callback({ query })).message, "User deleted");
    await tokenIsDead(token);
  });
}

if (oldToken) {
  await deletionByLinkSteps(oldToken);
} else {
  await verificationSteps();
  await guestSteps();
  await resetSteps();
  await addressSteps();
  await deletionSteps();
}
