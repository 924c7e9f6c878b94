// The pages before the console: first run, sign-in and its errors, sign-up, links in mails, the claim, and sessions that end.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { ADMIN, admin, base, call, details, focused, heading, hostile, intercept, look, must, open, person, setPassword, signIn, until } from "./harness.mjs";

const { CLAIM_URL, CLAIM_2_URL, SETUP_URL, MAIL_URL, MAIL_LOG } = process.env;

const signInButton = (page) => page.getByRole("button", { name: "Sign in", exact: true });

test("a fresh server with a setup token asks for it, refuses a wrong one, and makes the admin", async () => {
  const page = await open("/admin/roles", { at: SETUP_URL, expect: [/403/] });
  await heading(page, "Create the admin account").waitFor();
  await look(page, "first-run");
  await page.getByLabel("Setup token").fill("not the token");
  await page.getByLabel("Name").fill(ADMIN.name);
  await page.getByLabel("Email").fill(ADMIN.email);
  await page.getByLabel("Password", { exact: true }).fill(ADMIN.password);
  await page.getByRole("button", { name: "Create admin account" }).click();
  await page.getByLabel("Setup token").and(page.locator('[aria-invalid="true"]')).waitFor();
  await page.getByLabel("Setup token").fill("let-me-in-please-1234");
  await page.getByRole("button", { name: "Create admin account" }).click();
  // The deep link still works after the first run.
  await heading(page, "Roles").waitFor();
});

test("a fresh server makes its first account the admin, and says what is wrong with a password", async () => {
  const page = await open("/admin", { expect: [/400/] });
  await heading(page, "Create the admin account").waitFor();
  await page.getByLabel("Name").fill(ADMIN.name);
  await page.getByLabel("Email").fill(ADMIN.email);
  await page.getByLabel("Password", { exact: true }).fill("password1");
  await page.getByRole("button", { name: "Create admin account" }).click();
  await page.getByLabel("Password", { exact: true }).and(page.locator('[aria-invalid="true"]')).waitFor();
  await page.getByLabel("Password", { exact: true }).fill(ADMIN.password);
  await page.getByRole("button", { name: "Create admin account" }).click();
  await page.getByRole("navigation", { name: "Main" }).getByRole("link", { name: "Users" }).waitFor();
});


test("sign-in keeps the deep link, says what is wrong, and leaves nothing in web storage", async () => {
  await admin();
  const page = await open("/admin/account?x=1", { expect: [/401/] });
  await heading(page, "Sign in").waitFor();
  await page.getByText("Forgot your password? An administrator can give you a link.").waitFor();
  assert.equal(await page.getByRole("button", { name: "Forgot password?" }).count(), 0);
  await look(page, "sign-in");
  assert.equal(await focused(page), "email");
  await page.getByLabel("Email").fill(ADMIN.email);
  await page.getByLabel("Password", { exact: true }).fill("not the password");
  await page.keyboard.press("Enter");
  await page.getByText("Email or password is wrong").waitFor();
  await look(page, "sign-in-wrong");
  await page.getByLabel("Password", { exact: true }).fill(ADMIN.password);
  await signInButton(page).click();
  await heading(page, "Your account").waitFor();
  assert.equal(new URL(page.url()).pathname, "/admin/account");
  const stored = await page.evaluate(() => JSON.stringify({ ...localStorage, ...sessionStorage }));
  assert.doesNotMatch(stored, /token|session|secret|correct horse|svc_/i);
  assert.equal(await page.evaluate(() => document.cookie), "", "the cookie is HttpOnly");
});

test("too many wrong passwords say how long to wait, and the button waits too", async () => {
  const owner = await admin();
  const other = await person(owner, "Locked Out");
  await until("the server makes one wait", async () => (await call(null, "POST", "/api/auth/sign-in/email", { email: other.email, password: "wrong wrong" })).status === 429);
  const page = await open("/admin", { expect: [/429/, /401/] });
  // Each failure makes the pause longer. After this one, it is still running when the page sends its request.
  await call(null, "POST", "/api/auth/sign-in/email", { email: other.email, password: "wrong wrong" });
  await intercept(page, "/api/auth/sign-in/email", { status: 429, headers: { "retry-after": "3", "x-retry-after": "3" }, body: { code: "TOO_MANY_REQUESTS", error: "TOO_MANY_REQUESTS", message: "Too many failed sign-ins." } });
  await page.getByLabel("Email").fill(other.email);
  await page.getByLabel("Password", { exact: true }).fill(other.password);
  // Both are shown for three seconds only, so the page is watched from before the click.
  const waiting = page.getByRole("button", { name: /Sign in in \d s/, disabled: true });
  await Promise.all([page.getByText(/Wait \d seconds?, then try again/).waitFor(), waiting.waitFor(), signInButton(page).click()]);
  await page.getByText("You can try again now.").waitFor();
  assert.ok(await signInButton(page).isEnabled());
});

test("sign-up, where it is open, makes an account that may not see anything yet and is told so", async () => {
  await admin();
  const page = await open("/admin", { expect: [/422/] });
  await page.getByRole("button", { name: "Create one" }).click();
  await page.getByLabel("Name").fill(hostile.markup);
  await page.getByLabel("Email").fill(ADMIN.email);
  await page.getByLabel("Password", { exact: true }).fill("correct horse battery");
  await page.getByRole("button", { name: "Create account" }).click();
  await page.getByLabel("Email").and(page.locator('[aria-invalid="true"]')).waitFor();
  await page.getByLabel("Email").fill("newcomer@example.com");
  await page.getByRole("button", { name: "Create account" }).click();
  await page.getByRole("heading", { name: "You may not see anything yet" }).waitFor();
  await look(page, "nothing-granted");
  const rail = page.getByRole("navigation", { name: "Main" });
  assert.equal(await rail.getByRole("link", { name: "Users" }).count(), 0);
});

/** Creates an account and returns the console's address in its link. */
async function linkOf(session, email) {
  const { pathname, hash } = new URL((await must(session, "POST", "/api/v1/users", { email })).link);
  return { address: pathname + hash, hash, token: hash.split("=")[1] };
}

test("a link sets a password: its token leaves the address bar, is stored nowhere, and works once", async () => {
  const owner = await admin();
  const { address, token } = await linkOf(owner, "linus@example.com");
  const page = await open(address, { expect: [/status of 400/] });
  const requests = [];
  page.on("request", (request) => requests.push(request));
  await heading(page, "Choose a password").waitFor();
  assert.equal(page.url(), `${base}/admin/set-password`);
  await until("the first field has the focus", async () => (await focused(page)) === "new-password");
  await look(page, "set-password");

  await setPassword(page, "password1");
  await page.getByLabel("New password", { exact: true }).and(page.locator('[aria-invalid="true"]')).waitFor();
  await setPassword(page, "a password of mine", "a password of nobody");
  await page.getByText("The two passwords differ").waitFor();
  await look(page, "set-password-refused");
  await setPassword(page, "a password of mine");
  await heading(page, "Sign in").waitFor();
  await page.getByText("Your password is set. Sign in with it.").waitFor();
  assert.equal(new URL(page.url()).pathname, "/admin/");
  await page.getByLabel("Email").fill("linus@example.com");
  await page.getByLabel("Password", { exact: true }).fill("a password of mine");
  await signInButton(page).click();
  await page.getByRole("heading", { name: "You may not see anything yet" }).waitFor();
  assert.ok(!(await page.evaluate(() => JSON.stringify([location.href, { ...localStorage }, { ...sessionStorage }]))).includes(token));
  // Only one request contains the token, and only in its body.
  const having = requests.filter((request) => request.url().includes(token) || JSON.stringify(request.headers()).includes(token));
  assert.deepEqual(having.map((request) => request.url()), []);

  // The link has been used.
  await page.goto(base + address);
  await page.getByText("linus@example.com is signed in here, and will be signed out.").waitFor();
  await setPassword(page, "a third password");
  await heading(page, "This link does not work").waitFor();
  await look(page, "set-password-used");
  await page.getByRole("link", { name: "Go to the console" }).click();
  await page.getByRole("heading", { name: "You may not see anything yet" }).waitFor();
});

test("a link is used where somebody else is signed in, who is signed out", async () => {
  const owner = await admin();
  const other = await person(owner, "Otto Other");
  const { address } = await linkOf(owner, "lena@example.com");
  const page = await open(address, { as: other });
  await page.getByText("otto-other@example.com is signed in here, and will be signed out.").waitFor();
  await setPassword(page, "a password of mine");
  await page.getByText("Your password is set. Sign in with it.").waitFor();
  assert.equal((await call(other, "GET", "/api/v1/me/preferences")).status, 401);
  await page.getByLabel("Email").fill("lena@example.com");
  await page.getByLabel("Password", { exact: true }).fill("a password of mine");
  await signInButton(page).click();
  await page.getByText("Your account (lena@example.com) has no role").waitFor();
});

test("without a link, or with a wrong one, the page says what to do, and takes another link", async () => {
  const owner = await admin();
  const { hash } = await linkOf(owner, "lars@example.com");
  const page = await open("/admin/set-password", { expect: [/status of 400/] });
  await heading(page, "Open your link again").waitFor();
  await look(page, "set-password-no-link");
  // If a link is pasted into the address bar of this page, only the fragment changes.
  const paste = (fragment) => page.evaluate((to) => void (location.hash = to), fragment);
  await paste("#token=this-is-not-a-token-of-anybody");
  await heading(page, "Choose a password").waitFor();
  assert.equal(page.url(), `${base}/admin/set-password`);
  await setPassword(page, "a password of mine");
  await heading(page, "This link does not work").waitFor();
  await paste(hash);
  await heading(page, "Choose a password").waitFor();
  assert.equal(page.url(), `${base}/admin/set-password`);
  // After a reload, the page no longer has the token.
  await page.reload();
  await heading(page, "Open your link again").waitFor();
  await paste(hash);
  await setPassword(page, "a password of mine");
  await page.getByText("Your password is set. Sign in with it.").waitFor();
});

const SETS_PASSWORD = /http[^\s"\\]+\/admin\/set-password#token=[\w-]+(?=[\s"\\])/g;
const CONFIRMS = /http[^\s"\\]+\/verify-email\?token=[\w-]+&callbackURL=[\w%.-]+(?=[\s"\\])/g;
/** The links of one kind that the server at MAIL_URL has mailed. It writes its mails to its log. */
const mailed = (kind) => [...readFileSync(MAIL_LOG, "utf8").matchAll(kind)];
/** Runs `act`, which has a mail sent. Returns the address of the mail's link at MAIL_URL. */
async function linkOfMail(kind, act) {
  const before = mailed(kind).length;
  await act();
  await until("the mail is sent", () => mailed(kind).length > before);
  const { pathname, search, hash } = new URL(mailed(kind)[before][0]);
  return MAIL_URL + pathname + search + hash;
}

test("where addresses have to be confirmed, a sign-up waits for the link of a mail, which signs its browser in", async () => {
  await admin({ at: MAIL_URL });
  const page = await open("/admin", { at: MAIL_URL, expect: [/status of 403/] });
  await page.getByRole("button", { name: "Create one" }).click();
  await page.getByLabel("Name").fill("Vera");
  await page.getByLabel("Email").fill("vera@example.com");
  await page.getByLabel("Password", { exact: true }).fill("correct horse battery");
  const first = await linkOfMail(CONFIRMS, () => page.getByRole("button", { name: "Create account" }).click());
  await heading(page, "Confirm your address").waitFor();
  await page.getByText("A mail with a link was sent to vera@example.com.").waitFor();
  await look(page, "confirm-address");

  // Nobody can sign in before, and each attempt sends a link.
  await page.getByRole("button", { name: "Back to the sign-in" }).click();
  await linkOfMail(CONFIRMS, () => signInButton(page).click());
  await page.getByText("A mail with a link was sent to vera@example.com.").waitFor();
  await linkOfMail(CONFIRMS, () => page.getByRole("button", { name: "Send again" }).click());
  await page.getByText("Another mail is on its way.").waitFor();
  await look(page, "confirm-address-again");

  // A link that has been altered, or has been used, does not work.
  await page.goto(first.replace("token=", "token=altered"));
  await page.getByText("The link is no longer valid").waitFor();
  assert.equal(page.url(), `${MAIL_URL}/admin`);
  await look(page, "link-refused");
  await page.getByRole("button", { name: "Send another link" }).click();
  await heading(page, "Confirm your address").waitFor();
  await page.getByLabel("Email").fill("vera@example.com");
  await look(page, "confirm-address-ask");
  const newest = await linkOfMail(CONFIRMS, () => page.getByRole("button", { name: "Send link" }).click());
  await heading(page, "Look into your mail").waitFor();
  await page.goto(newest);
  await page.getByText("Your account (vera@example.com) has no role").waitFor();
});

test("a user is invited by a mail, forgets the password, and sets another one by a mail", async () => {
  const owner = await admin({ at: MAIL_URL });
  const view = await open("/admin/users?new=true", { at: MAIL_URL, as: owner });
  const pane = details(view);
  await pane.getByLabel("Email").fill("mia@example.com");
  const invitation = await linkOfMail(SETS_PASSWORD, () => pane.getByRole("button", { name: "Create user" }).click());
  await pane.getByText("A mail with a link was sent to mia@example.com.").waitFor();
  assert.equal(await view.locator("[data-secret]").count(), 0);
  await look(view, "user-invited");
  await pane.getByRole("link", { name: "Deliveries of mail" }).click();
  await view.getByRole("grid", { name: "Deliveries" }).getByText("Mail", { exact: true }).first().waitFor();

  const page = await open("/admin", { at: MAIL_URL, expect: [/status of 401/] });
  const signsIn = async (password) => {
    await page.getByText("Your password is set. Sign in with it.").waitFor();
    await page.getByLabel("Email").fill("mia@example.com");
    await page.getByLabel("Password", { exact: true }).fill(password);
    await signInButton(page).click();
    await page.getByText("Your account (mia@example.com) has no role").waitFor();
  };
  await page.goto(invitation);
  await setPassword(page, "a password of mine");
  await signsIn("a password of mine");
  await page.context().clearCookies();

  await page.goto(`${MAIL_URL}/admin`);
  await page.getByLabel("Email").fill("mia@example.com");
  await page.getByRole("button", { name: "Forgot password?" }).click();
  await heading(page, "Forgot your password?").waitFor();
  assert.equal(await page.getByLabel("Email").inputValue(), "mia@example.com");
  await look(page, "forgot-password");
  const reset = await linkOfMail(SETS_PASSWORD, () => page.getByRole("button", { name: "Send link" }).click());
  await page.getByText("If an account has this address, a mail with a link is on its way.").waitFor();
  await look(page, "forgot-password-sent");
  await page.goto(reset);
  await setPassword(page, "another password of mine");
  await signsIn("another password of mine");
});

test("the own account shows whether its address is confirmed, and has a link sent for it", async () => {
  const page = await open("/admin/account", { at: MAIL_URL, as: await admin({ at: MAIL_URL }) });
  await page.getByText("not confirmed").waitFor();
  await look(page, "account-not-confirmed");
  const link = await linkOfMail(CONFIRMS, () => page.getByRole("button", { name: "Send a link to confirm" }).click());
  await page.getByText(`A mail with a link was sent to ${ADMIN.email}.`).waitFor();
  await page.goto(link);
  await page.getByText("confirmed", { exact: true }).waitFor();
  assert.equal(page.url(), `${MAIL_URL}/admin/account`);
  assert.equal(await page.getByRole("button", { name: "Send a link to confirm" }).count(), 0);
  // The link works only once.
  await page.goto(link);
  await page.getByText("The link is no longer valid").waitFor();
  assert.equal(page.url(), `${MAIL_URL}/admin/account`);
});

test("a pending claim leads to the onboarding from every address, and is then over", async () => {
  const boot = { email: "boot@example.com", password: "the first password", name: "" };
  const rival = await signIn(boot, { at: CLAIM_URL });
  const loser = await open("/admin/users", { at: CLAIM_URL, expect: [/401/, /409/] });
  await loser.getByLabel("Email").fill(boot.email);
  await loser.getByLabel("Password", { exact: true }).fill(boot.password);
  await signInButton(loser).click();
  await heading(loser, "Make this account yours").waitFor();
  assert.equal(new URL(loser.url()).pathname, "/admin/onboarding");
  await loser.goto(`${CLAIM_URL}/admin/roles`);
  await heading(loser, "Make this account yours").waitFor();
  await look(loser, "onboarding");
  await loser.getByLabel("Your name").fill("Late");
  await loser.getByLabel("New password", { exact: true }).fill("another password 1");
  await loser.getByLabel("New password again").fill("another password 2");
  await loser.getByRole("button", { name: "Take over the account" }).click();
  await loser.getByText("The two passwords differ").waitFor();

  // Another session claims the same account first.
  await must(rival, "POST", "/api/v1/admin/claim", { name: "First", newPassword: "a password of mine" }, { at: CLAIM_URL });
  await loser.getByLabel("New password again").fill("another password 1");
  await loser.getByRole("button", { name: "Take over the account" }).click();
  await heading(loser, "Sign in").waitFor();
  await loser.getByText("Somebody else has taken this account over").waitFor();
  await look(loser, "claim-lost");

  const winner = await open("/admin/account", { at: CLAIM_URL });
  await winner.getByLabel("Email").fill(boot.email);
  await winner.getByLabel("Password", { exact: true }).fill("a password of mine");
  await signInButton(winner).click();
  await heading(winner, "Your account").waitFor();
});

test("the claim is made in the console, and the address asked for is shown", async () => {
  const at = CLAIM_2_URL;
  const page = await open("/admin/roles", { at });
  await page.getByLabel("Email").fill("boot@example.com");
  await page.getByLabel("Password", { exact: true }).fill("the first password");
  await signInButton(page).click();
  await page.getByLabel("Your name").fill("Grace");
  await page.getByLabel("New password", { exact: true }).fill("a password of mine");
  await page.getByLabel("New password again").fill("a password of mine");
  await page.getByRole("button", { name: "Take over the account" }).click();
  await heading(page, "Roles").waitFor();
  assert.equal((await call(null, "POST", "/api/auth/sign-in/email", { email: "boot@example.com", password: "the first password" }, { at })).status, 401);
});

test("a session that ends keeps what was typed: sign-in appears over the page, and the page goes on", async () => {
  const owner = await admin();
  const other = await person(owner, "Ella Expires");
  const page = await open("/admin/account", { as: other, expect: [/401/] });
  await page.getByRole("textbox", { name: "Name" }).fill("Ella After");
  await must(other, "POST", "/api/auth/sign-out", {});
  await page.getByRole("button", { name: "Sign out" }).first().waitFor();
  const dialog = page.getByRole("dialog", { name: "Your session has ended" });
  // The event stream notices the ended session within two seconds. A request would notice it at once.
  await dialog.waitFor();
  await look(page, "session-ended");
  assert.equal(await page.getByLabel("Name", { exact: true }).inputValue(), "Ella After");
  await dialog.getByLabel("Password", { exact: true }).fill("wrong wrong");
  await dialog.getByRole("button", { name: "Sign in", exact: true }).click();
  await dialog.getByText("Email or password is wrong").waitFor();
  await dialog.getByLabel("Password", { exact: true }).fill(other.password);
  await dialog.getByRole("button", { name: "Sign in", exact: true }).click();
  await dialog.waitFor({ state: "hidden" });
  assert.equal(await page.getByRole("textbox", { name: "Name" }).inputValue(), "Ella After");
  await page.getByRole("button", { name: "Save name" }).click();
  await page.getByText("Your name is changed.").waitFor();
});

test("a request that meets an ended session waits for the sign-in and is sent again", async () => {
  const owner = await admin();
  const other = await person(owner, "Rob Resumes");
  const page = await open("/admin", { expect: [/401/, /ERR_FAILED/] });
  // Without the event stream, the request is the first to notice the ended session.
  await page.route("**/api/v1/events/stream*", (route) => route.abort());
  await page.getByLabel("Email").fill(other.email);
  await page.getByLabel("Password", { exact: true }).fill(other.password);
  await signInButton(page).click();
  await page.getByRole("navigation", { name: "Main" }).waitFor();
  await page.goto(`${base}/admin/account`);
  await page.getByRole("textbox", { name: "Name" }).fill("Rob After");
  const [cookie] = await page.context().cookies();
  await must({ token: decodeURIComponent(cookie.value) }, "POST", "/api/auth/sign-out", {});
  await page.getByRole("button", { name: "Save name" }).click();
  const dialog = page.getByRole("dialog", { name: "Your session has ended" });
  await dialog.getByLabel("Password", { exact: true }).fill(other.password);
  await dialog.getByRole("button", { name: "Sign in", exact: true }).click();
  await page.getByText("Your name is changed.").waitFor();
  await page.getByRole("button", { name: "Rob After" }).waitFor();
});

