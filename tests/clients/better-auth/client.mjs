// Tests a running server with the unmodified better-auth client.
// Usage: node client.mjs <base_url>
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import {
  assertSignedOut,
  base,
  bearerClient,
  browserFetch,
  CookieJar,
  credentials,
  currentSession,
  me,
  newAccount,
  newBrowser,
  newClient,
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

const WEEK_MS = 7 * 24 * 60 * 60 * 1000;

async function newUser() {
  const browser = newBrowser();
  const account = newAccount();
  const { user, token } = await signUp(browser, account);
  return { ...browser, account, user, token };
}

function assertUser(user, account) {
  assert.equal(user.name, account.name);
  assert.equal(user.email, account.email);
  assert.equal(user.emailVerified, false);
  assert.equal(user.isAnonymous, false);
  assert.ok(user.createdAt instanceof Date, "createdAt is revived as a Date");
  assert.ok(user.updatedAt instanceof Date, "updatedAt is revived as a Date");
  assert.ok(Math.abs(user.createdAt - Date.now()) < 60_000, "createdAt is about now");
}

function assertPersistentCookie(jar) {
  const cookie = jar.session();
  assert.ok(cookie, "no session cookie was set");
  assert.ok(cookie.attributes.includes("Max-Age=604800"), cookie.attributes.join("; "));
  assert.ok(cookie.attributes.includes("HttpOnly"), cookie.attributes.join("; "));
}

// ---- account and sessions ------------------------------------------------

async function accountSteps() {
  const browser = newBrowser();
  const account = newAccount();
  let userId;

  await step("sign up", async () => {
    const { token, user } = await signUp(browser, account);
    assert.equal(typeof token, "string");
    assertUser(user, account);
    assertPersistentCookie(browser.jar);
    userId = user.id;
  });

  await step("get session", async () => {
    const { session, user } = await currentSession(browser);
    assert.equal(user.id, userId);
    assertUser(user, account);
    assert.equal(session.userId, userId);
    for (const field of ["expiresAt", "createdAt", "updatedAt"]) {
      assert.ok(session[field] instanceof Date, `${field} is revived as a Date`);
    }
    const remaining = session.expiresAt - Date.now();
    assert.ok(Math.abs(remaining - WEEK_MS) < 60_000, `expires in ${remaining} ms`);
  });

  await step("sign up with a taken email", async () => {
    const again = await newBrowser().client.signUp.email({ ...account, email: account.email.toUpperCase() });
    refused(again, 422, "USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL");
  });

  await step("sign up with a short password", async () => {
    const result = await newBrowser().client.signUp.email({ ...newAccount(), password: "short" });
    refused(result, 400, "PASSWORD_TOO_SHORT");
  });

  await step("sign out", async () => {
    assert.equal(succeeded(await browser.client.signOut()).success, true);
    assert.equal(browser.jar.session(), undefined, "the cookie is cleared");
    await assertSignedOut(browser);
  });

  await step("sign in with a wrong password", async () => {
    const result = await browser.client.signIn.email({ email: account.email, password: newPassword() });
    refused(result, 401, "INVALID_EMAIL_OR_PASSWORD");
    assert.equal(browser.jar.session(), undefined);
  });

  await step("sign in", async () => {
    const { redirect, token, user } = await signIn(browser, account);
    assert.equal(redirect, false);
    assert.equal(typeof token, "string");
    assert.equal(user.id, userId);
    assertPersistentCookie(browser.jar);
  });

  await step("sign in without being remembered", async () => {
    const shortLived = newBrowser();
    succeeded(await shortLived.client.signIn.email({ ...credentials(account), rememberMe: false }));
    const cookie = shortLived.jar.session();
    assert.ok(!cookie.attributes.some((attribute) => /^max-age/i.test(attribute)), "no Max-Age");
    succeeded(await shortLived.client.signOut());
  });

  return { ...browser, account, userId };
}

async function listSessions({ client }) {
  return succeeded(await client.listSessions());
}

async function sessionSteps({ account, ...first }) {
  let second;

  await step("list sessions", async () => {
    second = await newSignedInBrowser(account);
    const sessions = await listSessions(first);
    assert.equal(sessions.length, 2);
    assert.ok(sessions.every(({ token }) => token == null), "tokens are not shown");
    assert.ok(sessions.every(({ createdAt }) => createdAt instanceof Date));
    const current = sessions.filter((session) => session.current === true);
    assert.equal(current.length, 1);
    assert.equal(current[0].id, (await currentSession(first)).session.id);
  });

  await step("revoke a session by id", async () => {
    const other = (await listSessions(first)).find((session) => !session.current);
    const result = await first.client.$fetch("/revoke-session", { method: "POST", body: { id: other.id } });
    assert.equal(succeeded(result).status, true);
    await assertSignedOut(second);
    assert.equal((await listSessions(first)).length, 1);
  });

  await step("revoke a session by token", async () => {
    second = await newSignedInBrowser(account);
    assert.equal(succeeded(await first.client.revokeSession({ token: second.token })).status, true);
    await assertSignedOut(second);
    await tokenIsDead(second.token);
    assert.ok(await currentSession(first), "the own session stays");
  });

  await step("revoke the other sessions", async () => {
    second = await newSignedInBrowser(account);
    assert.equal(succeeded(await first.client.revokeOtherSessions()).status, true);
    await assertSignedOut(second);
    assert.ok(await currentSession(first), "the own session stays");
  });

  await step("revoke all sessions", async () => {
    second = await newSignedInBrowser(account);
    assert.equal(succeeded(await first.client.revokeSessions()).status, true);
    await assertSignedOut(first);
    await assertSignedOut(second);
    refused(await newBrowser().client.listSessions(), 401, "UNAUTHORIZED");
  });
}

// ---- password and profile ------------------------------------------------

async function passwordSteps() {
  const { account, token: oldToken, ...browser } = await newUser();
  const changed = { ...account, password: newPassword() };

  await step("change password with a wrong current password", async () => {
    const result = await browser.client.changePassword({
      currentPassword: newPassword(),
      newPassword: changed.password,
    });
    refused(result, 400, "INVALID_PASSWORD");
  });

  await step("change password to a short one", async () => {
    const result = await browser.client.changePassword({ currentPassword: account.password, newPassword: "short" });
    refused(result, 400, "PASSWORD_TOO_SHORT");
  });

  await step("change password and revoke the other sessions", async () => {
    const other = await newSignedInBrowser(account);
    const { token, user } = succeeded(
      await browser.client.changePassword({
        currentPassword: account.password,
        newPassword: changed.password,
        revokeOtherSessions: true,
      }),
    );
    assert.equal(user.email, account.email);
    assert.equal(typeof token, "string");
    assert.notEqual(token, oldToken);
    await assertSignedOut(other);
    await tokenIsDead(oldToken);
    assert.equal((await currentSession(browser)).user.id, user.id);
  });

  await step("sign in with the old password", async () => {
    refused(await newBrowser().client.signIn.email(credentials(account)), 401, "INVALID_EMAIL_OR_PASSWORD");
  });

  await step("sign in with the new password", async () => {
    await newSignedInBrowser(changed);
  });

  await step("change password and keep the other sessions", async () => {
    const other = await newSignedInBrowser(changed);
    const { token } = succeeded(
      await browser.client.changePassword({ currentPassword: changed.password, newPassword: newPassword() }),
    );
    assert.equal(token, null);
    assert.ok(await currentSession(other), "the other session stays");
  });
}

// The administrator of the server under test.
const admin = { email: "admin@example.com", password: "correct horse battery" };

async function resetSteps() {
  const account = newAccount();
  const { token: adminToken } = await newSignedInBrowser(admin);
  const post = async (path, body) => {
    const headers = { authorization: `Bearer ${adminToken}`, "content-type": "application/json" };
    const response = await fetch(new URL(path, base), { method: "POST", headers, body: JSON.stringify(body) });
    assert.equal(response.status, 201);
    return response.json();
  };
  const tokenOf = (link) => new URL(link).hash.replace("#token=", "");
  const invitation = await post("/api/v1/users", { email: account.email, name: account.name });
  const browser = newBrowser();

  await step("set the first password with an invitation", async () => {
    const token = tokenOf(invitation.link);
    refused(await browser.client.resetPassword({ newPassword: "short", token }), 400, "PASSWORD_TOO_SHORT");
    assert.equal(succeeded(await browser.client.resetPassword({ newPassword: account.password, token })).status, true);
    await signIn(browser, account);
    refused(await browser.client.resetPassword({ newPassword: newPassword(), token }), 400, "INVALID_TOKEN");
  });

  await step("set another password with a link", async () => {
    const { data } = await post(`/api/v1/users/${invitation.data.id}/password-link`, {});
    account.password = newPassword();
    const fresh = newBrowser();
    const result = await fresh.client.resetPassword({ newPassword: account.password, token: tokenOf(data.link) });
    assert.equal(succeeded(result).status, true);
    await assertSignedOut(browser);
    await signIn(fresh, account);
  });

  await step("ask for a link while there is no mail", async () => {
    refused(await browser.client.requestPasswordReset({ email: account.email, redirectTo: "/" }), 404, "not_found");
  });
}

async function profileSteps() {
  const browser = await newUser();

  await step("update name and image", async () => {
    const profile = { name: "Renamed", image: "https://example.com/face.png" };
    assert.equal(succeeded(await browser.client.updateUser(profile)).status, true);
    const { user } = await currentSession(browser);
    assert.equal(user.name, profile.name);
    assert.equal(user.image, profile.image);
  });

  await step("remove the image", async () => {
    succeeded(await browser.client.updateUser({ image: null }));
    const { user } = await currentSession(browser);
    assert.equal(user.image, null);
    assert.equal(user.name, "Renamed");
  });

  await step("update the email", async () => {
    const result = await browser.client.updateUser({ email: newAccount().email });
    refused(result, 400, "EMAIL_CAN_NOT_BE_UPDATED");
  });
}

// ---- guests --------------------------------------------------------------

function assertGuest(user) {
  assert.equal(user.isAnonymous, true);
  assert.equal(user.name, "Anonymous");
  const [, host] = /^temp-[^@\s]+@(\S+)$/.exec(user.email) ?? [];
  assert.ok(host === base.hostname || host === base.host, `guest email ${user.email}`);
}

async function guestSteps() {
  const browser = newBrowser();
  let guest;

  await step("sign in as a guest", async () => {
    guest = await signInGuest(browser);
    assertGuest(guest.user);
    assertPersistentCookie(browser.jar);
    assert.equal((await currentSession(browser)).user.id, guest.user.id);
    const identity = await me(guest.token);
    assert.equal(identity.authenticated, true);
    assert.equal(identity.userId, guest.user.id);
    assert.deepEqual(identity.roles, ["anonymous"]);
  });

  await step("sign in as a guest again", async () => {
    const again = await browser.client.signIn.anonymous();
    refused(again, 400, "ANONYMOUS_USERS_CANNOT_SIGN_IN_AGAIN_ANONYMOUSLY");
  });

  await step("a guest has no password to change", async () => {
    const result = await browser.client.changePassword({
      currentPassword: newPassword(),
      newPassword: newPassword(),
    });
    refused(result, 400, "CREDENTIAL_ACCOUNT_NOT_FOUND");
  });

  await step("a failed upgrade keeps the guest", async () => {
    const { account } = await newUser();
    refused(await browser.client.signUp.email(account), 422, "USER_ALREADY_EXISTS_USE_ANOTHER_EMAIL");
    assert.equal((await currentSession(browser)).user.id, guest.user.id);
  });

  await step("upgrade a guest by sign-up", async () => {
    const account = newAccount();
    const { token, user } = await signUp(browser, account);
    assert.notEqual(user.id, guest.user.id);
    assertUser(user, account);
    assert.equal((await currentSession(browser)).user.id, user.id);
    await tokenIsDead(guest.token);
    assert.equal((await me(guest.token)).authenticated, false);
    const identity = await me(token);
    assert.equal(identity.userId, user.id);
    assert.ok(!identity.roles.includes("anonymous"), "the guest role is dropped");
  });

  await step("upgrade a guest by sign-in", async () => {
    const { account, user } = await newUser();
    const other = newBrowser();
    const { token } = await signInGuest(other);
    await signIn(other, account);
    assert.equal((await currentSession(other)).user.id, user.id);
    await tokenIsDead(token);
  });

  await step("upgrade a guest by bearer", async () => {
    const { token } = await signInGuest(newBrowser());
    const browserless = newClient({
      auth: { type: "Bearer", token },
      customFetchImpl: browserFetch(new CookieJar()),
    });
    const { user } = succeeded(await browserless.signUp.email(newAccount()));
    assert.equal(user.isAnonymous, false);
    await tokenIsDead(token);
  });

  await step("delete a guest", async () => {
    const other = newBrowser();
    const { token } = await signInGuest(other);
    assert.equal(succeeded(await other.client.deleteAnonymousUser()).success, true);
    assert.equal(other.jar.session(), undefined, "the cookie is cleared");
    await assertSignedOut(other);
    await tokenIsDead(token);
  });

  await step("a registered user is not deleted as a guest", async () => {
    const registered = await newUser();
    refused(await registered.client.deleteAnonymousUser(), 403, "USER_IS_NOT_ANONYMOUS");
    assert.ok(await currentSession(registered));
  });
}

// ---- bearer --------------------------------------------------------------

async function bearerSteps() {
  const { account, user } = await newUser();
  const seen = {};
  const keepToken = (key) => ({ response }) => {
    seen[key] = response.headers.get("set-auth-token");
    seen.exposed = response.headers.get("access-control-expose-headers");
  };
  let token;

  await step("read set-auth-token in the client hooks", async () => {
    const client = newClient({
      customFetchImpl: browserFetch(new CookieJar()),
      onResponse: keepToken("onResponse"),
    });
    const result = await client.signIn.email(credentials(account), { onSuccess: keepToken("onSuccess") });
    token = succeeded(result).token;
    assert.ok(seen.onSuccess, "no set-auth-token in onSuccess");
    assert.equal(seen.onResponse, seen.onSuccess);
    assert.match(seen.exposed ?? "", /\bset-auth-token\b/i);
  });

  const forms = () => ({
    "the bare token": token,
    "the set-auth-token value": seen.onSuccess,
    "its percent-encoded form": encodeURIComponent(decodeURIComponent(seen.onSuccess)),
  });
  for (const form of ["the bare token", "the set-auth-token value", "its percent-encoded form"]) {
    await step(`use ${form} as bearer`, async () => {
      const session = succeeded(await bearerClient(forms()[form]).getSession());
      assert.equal(session?.user.id, user.id);
    });
  }

  await step("write with a bearer token", async () => {
    const client = bearerClient(token);
    assert.equal(succeeded(await client.updateUser({ name: "By bearer" })).status, true);
    assert.equal(succeeded(await client.getSession()).user.name, "By bearer");
    assert.equal((await me(token)).userId, user.id);
  });

  await step("an unknown bearer token", async () => {
    const unknown = randomBytes(16).toString("hex");
    await tokenIsDead(unknown);
    refused(await bearerClient(unknown).listSessions(), 401, "UNAUTHORIZED");
    assert.deepEqual(await me(unknown), { authenticated: false });
  });

  await step("sign out with a bearer token", async () => {
    assert.equal(succeeded(await bearerClient(token).signOut()).success, true);
    await tokenIsDead(token);
  });
}

await sessionSteps(await accountSteps());
await passwordSteps();
await resetSteps();
await profileSteps();
await guestSteps();
await bearerSteps();
