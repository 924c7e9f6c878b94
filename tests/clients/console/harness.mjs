// The base of all browser tests of the console. Environment: BASE_URL (the address whose /admin is tested), ENGINE, ARTIFACTS (the folder
// for pictures), CHROMIUM and FIREFOX (paths of the browsers).
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, afterEach } from "node:test";
import { chromium } from "playwright-core";

export const base = (process.env.BASE_URL ?? "http://127.0.0.1:4173").replace(/\/$/, "");
export const engine = process.env.ENGINE ?? "sqlite";
const artifacts = process.env.ARTIFACTS ?? "artifacts";
const CHROMIUM = process.env.CHROMIUM ?? "/usr/bin/chromium";
const FIREFOX = process.env.FIREFOX ?? "/usr/bin/firefox-esr";

/** The maximum wait for anything on a busy machine. After it, the thing counts as missing. */
export const PATIENCE_MS = Number(process.env.PATIENCE_MS ?? 60_000);
const WIDTHS = [1280, 360];
const THEMES = ["light", "dark"];

const CHROMIUM_ARGUMENTS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--disable-dev-shm-usage",
];

/** Names and values that break careless pages. */
export const hostile = {
  markup: `<img src=x onerror="window.__hacked=1"><script>window.__hacked=1</script>'"\`{{7*7}}\${7*7}`,
  link: "javascript:window.__hacked=1",
  rtl: "שלום \u202Eمرحبا\u202C abc",
  combining: `Z${"\u0310\u0353\u0321\u033A".repeat(40)}algo`,
  emoji: "👩‍👩‍👧‍👦🏳️‍🌈 ok",
  long: "lorem ".repeat(1_667).slice(0, 10_000),
  unbroken: "x".repeat(10_000),
  spaces: "  \t two  spaces \n and a line",
  csv: '=HYPERLINK("http://example.com","x")',
};

// ---- the server, without a browser

export const ADMIN = { name: "Ada Admin", email: "admin@example.com", password: "correct horse battery" };

/**
 * Sends a request like a program. `session` is the result of `signUp` or `signIn`. Returns `{ status, body, headers }`. Fails only if there
 * is no response.
 */
export async function call(session, method, path, body, { at = base, headers = {} } = {}) {
  const response = await fetch(at + path, {
    method,
    headers: {
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...(session ? { authorization: `Bearer ${session.token}` } : {}),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  let parsed = text;
  try {
    parsed = JSON.parse(text);
  } catch {
    // The body is not JSON.
  }
  return { status: response.status, body: parsed, headers: response.headers };
}

/** The same as `call`, but fails if the response is an error. Returns the body. */
export async function must(session, method, path, body, options) {
  const answer = await call(session, method, path, body, options);
  assert.ok(answer.status < 400, `${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
  return answer.body;
}

function sessionOf(answer, person) {
  assert.ok(answer.status < 400, `${person.email}: ${answer.status} ${JSON.stringify(answer.body)}`);
  const [name, value] = answer.headers.getSetCookie()[0].split(";")[0].split("=");
  return { ...person, token: answer.body.token, userId: answer.body.user.id, cookie: { name, value } };
}

export async function signUp(person, options) {
  return sessionOf(await call(null, "POST", "/api/auth/sign-up/email", person, options), person);
}

export async function signIn({ email, password, name }, options) {
  return sessionOf(await call(null, "POST", "/api/auth/sign-in/email", { email, password }, options), { email, password, name });
}

/** Signs in the admin of this server, or creates the account if there is none yet. */
export async function admin(options) {
  const answer = await call(null, "POST", "/api/auth/sign-in/email", ADMIN, options);
  return answer.status < 400 ? sessionOf(answer, ADMIN) : signUp(ADMIN, options);
}

/** Creates another person, with a role that has these grants (`[{ resource, actions, rowPolicy? }]`). */
export async function person(adminSession, name, permissions = []) {
  const slug = name.toLowerCase().replaceAll(/\W+/g, "-");
  const made = await signUp({ name, email: `${slug}@example.com`, password: "correct horse battery" });
  if (permissions.length > 0) {
    const role = await must(adminSession, "POST", "/api/v1/roles", { name: `${slug}-role`, permissions });
    await must(adminSession, "POST", `/api/v1/users/${made.userId}/roles`, { roleId: role.data.id });
  }
  return made;
}

/** Makes a folder for the files of a test. It is removed at the end. */
export function folder(name) {
  const directory = mkdtempSync(join(tmpdir(), `blockbase-${name}-`));
  after(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}

/** Packs the component in BLOCK with this manifest. Returns the path of the packed file, which is in `directory`. */
export function pack(directory, manifest) {
  const path = join(directory, `${manifest.name}-${manifest.version}`);
  writeFileSync(`${path}.json`, JSON.stringify(manifest));
  execFileSync(process.env.BLOCKBASE, ["block", "pack", process.env.BLOCK, "--manifest", `${path}.json`, "--out", `${path}.wasm`]);
  return `${path}.wasm`;
}

/** Starts a receiver of webhooks on this machine. Returns its address, without a path. */
export async function receiver(handle) {
  const server = createServer(handle);
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  after(() => server.close());
  return `http://127.0.0.1:${server.address().port}`;
}

// ---- parts of many screens

export const button = (within, name) => within.getByRole("button", { name, exact: true });
export const heading = (page, name) => page.getByRole("heading", { name, level: 1 });
/** The panel beside a list. */
export const details = (page) => page.getByRole("complementary", { name: "Details" });
/** Answers a question of the page with this button. */
export const agree = (page, name) => button(page.getByRole("dialog"), name).click();
/** The rows of a table without its head. */
export const rows = (page, label) => page.getByRole("grid", { name: label }).locator('[role="row"][aria-rowindex]:not([aria-rowindex="1"])');
/** The table of records, and one of its cells. */
export const grid = (page) => page.getByRole("grid");
export const cell = (page, row, column) => grid(page).locator(`[data-row="${row}"] [data-column="${column}"]`);

/** Waits until the table shows its records. */
export async function ready(page) {
  await grid(page).locator("[data-row] [data-cell]").first().waitFor();
  await settled(page);
}

/** Chooses a column in a picker. Relations come first, with their names in the list. */
export async function choosePath(page, picker, ...names) {
  await picker.click();
  for (const name of names) await page.getByRole("option", { name, exact: true }).click();
}

/** The code editor with this label. While it is loaded, a pattern has a plain input in its place. */
export const codeEditor = (within, label) => within.locator(`.cm-content[aria-label="${label}"]`);

/** Replaces the text of a code editor. */
export async function writeCode(editor, text) {
  const { keyboard } = editor.page();
  await editor.click();
  await keyboard.press("Control+a");
  await keyboard.insertText(text);
}

/** The texts that describe an input, as a screen reader reads them. */
export const descriptionOf = (input) => input.evaluate((element) => (element.getAttribute("aria-describedby") ?? "").split(" ").map((id) => document.getElementById(id)?.textContent ?? "?").join(" | "));

/** Runs `act`, which lets the page copy something, and returns the copied text. */
export async function copied(page, act) {
  const none = "nothing is copied yet";
  await page.evaluate((text) => navigator.clipboard.writeText(text), none);
  await act();
  let text = none;
  await until("a text is copied", async () => (text = await page.evaluate(() => navigator.clipboard.readText())) !== none);
  return text;
}

/** Copies what the page shows in this form, such as "curl". Returns the text. */
export async function copyAs(page, name) {
  return copied(page, async () => {
    // After a copy, the button says "Copied" for a moment. This waits until it has its name again.
    await page.getByRole("button", { name: "Copy as" }).click();
    await page.getByRole("menuitem", { name, exact: true }).click();
  });
}

/** Lets the page try again what failed. Some screens recover by themselves, because their stream opens or because they poll. */
export async function tryAgain(page) {
  const again = page.getByRole("button", { name: "Try again", exact: true }).first();
  const tried = () => again.isEnabled({ timeout: 1_000 }).then((isEnabled) => isEnabled && again.click({ timeout: 1_000 }).then(() => true));
  await until("it is tried again", async () => (await again.count()) === 0 || (await tried().catch(() => false)));
}

/** Waits until an element has had the same place for 20 frames. Returns its box. */
export async function still(locator) {
  await locator.evaluate(
    (element) =>
      new Promise((resolve) => {
        let last = "";
        let frames = 0;
        const step = () => {
          const { x, y, width, height } = element.getBoundingClientRect();
          const now = [x, y, width, height].join();
          frames = now === last ? frames + 1 : 0;
          last = now;
          if (frames === 20) resolve();
          else requestAnimationFrame(step);
        };
        step();
      }),
  );
  return locator.boundingBox();
}

/** Fills the page of a link that sets a password, and sends it. */
export async function setPassword(page, password, again = password) {
  await page.getByLabel("New password", { exact: true }).fill(password);
  await page.getByLabel("New password again").fill(again);
  await button(page, "Set password").click();
}

// ---- the browser

let browser;
const opened = [];

async function chromiumOnce() {
  browser ??= await chromium.launch({ executablePath: CHROMIUM, args: CHROMIUM_ARGUMENTS, headless: true });
  return browser;
}

/**
 * Opens an address of the console: `open("/admin/roles", { as: session, theme: "dark", width: 360 })`. The test fails if anything goes
 * wrong in the page: an error in its console, a violation of the policy, a request that fails or goes to another server. `expect` is a list
 * of patterns of problems that do not make it fail.
 */
export async function open(path, { as, theme = "light", width = 1280, height = 800, at = base, expect = [], reducedMotion = "reduce", timezone = "Europe/Berlin" } = {}) {
  const context = await (await chromiumOnce()).newContext({ viewport: { width, height }, colorScheme: theme, reducedMotion, timezoneId: timezone, locale: "en-US" });
  context.setDefaultTimeout(PATIENCE_MS);
  await context.grantPermissions(["clipboard-read", "clipboard-write"], { origin: at });
  if (as) await context.addCookies([{ ...as.cookie, url: at, httpOnly: true, sameSite: "Lax" }]);
  const page = await context.newPage();
  const problems = [];
  const expected = [...expect];
  page.console = { problems, expect: (...patterns) => expected.push(...patterns), isExpected: (text) => expected.some((pattern) => (typeof pattern === "string" ? text.includes(pattern) : pattern.test(text))) };
  const note = (text) => problems.push(text);
  page.on("console", (message) => {
    if (message.type() === "error" || message.type() === "warning") note(`console ${message.type()}: ${message.text()} ${message.location().url ?? ""}`);
  });
  page.on("pageerror", (error) => note(`uncaught: ${error.stack ?? error.message}`));
  page.on("requestfailed", (request) => {
    const why = request.failure()?.errorText ?? "";
    // The browser aborts requests when a page is left or a query is no longer needed.
    if (!/ERR_ABORTED/.test(why)) note(`failed: ${request.method()} ${request.url()} ${why}`);
  });
  page.on("request", (request) => {
    const url = request.url();
    if (!url.startsWith(`${at}/`) && !/^(data|blob):/.test(url)) note(`left the server: ${url}`);
  });
  await page.exposeFunction("__violation", (text) => note(`policy: ${text}`));
  await page.addInitScript(() => {
    addEventListener("securitypolicyviolation", (event) => window.__violation(`${event.violatedDirective} ${event.blockedURI} ${event.sourceFile ?? ""}:${event.lineNumber}`));
  });
  opened.push({ context, page });
  await page.goto(at + path);
  return page;
}

/** The problems of a page so far. They make the test fail at its end. */
export function problemsOf(page) {
  return page.console.problems.filter((text) => !page.console.isExpected(text));
}

afterEach(async () => {
  const all = [];
  for (const { context, page } of opened.splice(0)) {
    if (!page.isClosed()) {
      const hacked = await page.evaluate(() => window.__hacked === 1).catch(() => false);
      if (hacked) all.push("data was run as a script");
    }
    all.push(...problemsOf(page));
    await context.close().catch(() => {});
  }
  assert.deepEqual(all, [], "problems in the page");
});

after(async () => {
  await browser?.close();
  await fox?.close();
});

/** Waits until a condition is true in this process: `await until("three rows", async () => (await rows()) === 3)`. */
export async function until(what, condition, patience = PATIENCE_MS) {
  const end = Date.now() + patience;
  for (;;) {
    if (await condition()) return;
    assert.ok(Date.now() < end, `not so in time: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 25));
  }
}

/** Waits until the page is at rest: no skeletons, all fonts loaded, two frames rendered. */
export async function settled(page) {
  await page.waitForFunction(() => document.querySelector('[aria-busy="true"]') === null && document.fonts.status === "loaded");
  await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
}

const axeSource = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Checks that axe-core finds nothing on the page. The debugger injects it, so the page's policy does not change. */
export async function axe(page, where = "page") {
  if (!(await page.evaluate(() => "axe" in window))) await page.evaluate(axeSource);
  const found = await page.evaluate(async () => {
    const { violations } = await window.axe.run(document, { resultTypes: ["violations"], iframes: false });
    return violations.map(({ id, help, nodes }) => `${id}: ${help}\n    ${nodes.slice(0, 5).map(({ target, failureSummary }) => `${target.join(" ")} (${failureSummary?.split("\n")[1]?.trim()})`).join("\n    ")}`);
  });
  assert.deepEqual(found, [], `axe-core on ${where}`);
}

const file = basename(process.argv[1] ?? "test", ".mjs");

/** Saves a picture of the page in the artifacts. */
export async function picture(page, name) {
  const directory = join(artifacts, file);
  mkdirSync(directory, { recursive: true });
  await page.screenshot({ path: join(directory, `${name}.png`), animations: "disabled" });
}

/** Saves a picture in both themes and all widths, and runs axe-core, which must find nothing. The page is restored afterwards. */
export async function look(page, name, { widths = WIDTHS, themes = THEMES, check = true } = {}) {
  const before = page.viewportSize();
  for (const width of widths) {
    await page.setViewportSize({ width, height: width < 600 ? 740 : 800 });
    for (const theme of themes) {
      await page.emulateMedia({ colorScheme: theme });
      await page.waitForFunction((wanted) => document.documentElement.dataset.mantineColorScheme === wanted, theme);
      await settled(page);
      const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
      await picture(page, `${name}-${theme}-${width}`);
      assert.ok(overflow <= 0, `${name} at ${width} px is ${overflow} px too wide`);
      if (check) await axe(page, `${name}, ${theme}, ${width} px`);
    }
  }
  await page.setViewportSize(before);
  await page.emulateMedia({ colorScheme: "light" });
  await settled(page);
}

/**
 * Answers requests with the test's own response: `{ status, body, headers }`, `"abort"`, or `{ delayMs }`. It applies to requests whose
 * address contains `part`, or for whose URL the function `part` returns true. Returns a function that ends it.
 */
export async function intercept(page, part, answer, { method } = {}) {
  const matches = typeof part === "function" ? part : (url) => url.href.includes(part);
  const handler = async (route) => {
    if (method !== undefined && route.request().method() !== method) return route.fallback();
    const given = typeof answer === "function" ? await answer(route.request()) : answer;
    if (given === undefined || given === null) return route.fallback();
    if (given === "abort") return route.abort("connectionrefused");
    if (given.delayMs !== undefined) {
      await new Promise((resolve) => setTimeout(resolve, given.delayMs));
      return route.fallback();
    }
    return route.fulfill({
      status: given.status ?? 200,
      headers: { "content-type": "application/json", "x-request-id": "01a2025c-0000-7000-8000-00000000e2e0", ...given.headers },
      body: typeof given.body === "string" ? given.body : JSON.stringify(given.body ?? {}),
    });
  };
  await page.route(matches, handler);
  return () => page.unroute(matches, handler);
}

/**
 * Delays the responses to requests whose address matches the pattern. The server makes each response at once, but the page gets it when the
 * test calls `release`. `isAsked` waits until the server has sent the first one.
 */
export async function holdAnswers(page, pattern) {
  let asked;
  let release;
  const isAsked = new Promise((resolve) => (asked = resolve));
  const isReleased = new Promise((resolve) => (release = resolve));
  await page.route(pattern, async (route) => {
    const answer = await route.fetch();
    asked();
    await isReleased;
    await route.fulfill({ response: answer });
  });
  return { isAsked, release };
}

/** The text of the focused element, which is roughly its accessible name. */
export function focused(page) {
  return page.evaluate(() => {
    const at = document.activeElement;
    return at?.getAttribute("aria-label") || at?.textContent?.trim() || at?.getAttribute("name") || at?.tagName || "";
  });
}

/** Measures the times of frames while `act` runs, in milliseconds, such as the 95th percentile and the maximum. */
export async function frames(page, act) {
  await page.evaluate(() => {
    window.__frames = [];
    let last = performance.now();
    const step = (now) => {
      window.__frames.push(now - last);
      last = now;
      window.__frameTimer = requestAnimationFrame(step);
    };
    window.__frameTimer = requestAnimationFrame(step);
  });
  await act();
  const times = await page.evaluate(() => {
    cancelAnimationFrame(window.__frameTimer);
    return window.__frames.slice(1).sort((one, other) => one - other);
  });
  return { count: times.length, p50: times[Math.floor(times.length * 0.5)], p95: times[Math.floor(times.length * 0.95)], max: times.at(-1) };
}

/** The times of frames while the page does nothing. On a busy machine, these frames are late too. */
export function framesAtRest(page) {
  return frames(page, () =>
    page.evaluate(async () => {
      for (let frame = 0; frame < 60; frame++) await new Promise(requestAnimationFrame);
    }),
  );
}

let fox;

/** Debian's own Firefox, started once. */
async function firefox() {
  const { default: puppeteer } = await import("puppeteer-core");
  fox ??= await puppeteer.launch({ browser: "firefox", executablePath: FIREFOX, headless: true, protocolTimeout: 4 * PATIENCE_MS });
  return fox;
}

/**
 * Opens an address in Debian's Firefox over WebDriver BiDi, with puppeteer's interface. Errors in the page's console make the test fail as
 * in `open`, unless `expect` names them.
 */
export async function openInFirefox(path, { as, width = 1280, height = 800, at = base, expect = [] } = {}) {
  const context = await (await firefox()).createBrowserContext();
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE_MS);
  // A window behind another one renders no frames, and locators wait for frames.
  await page.bringToFront();
  await page.setViewport({ width, height });
  const problems = [];
  const expected = [...expect];
  page.console = { problems, isExpected: (text) => expected.some((pattern) => (typeof pattern === "string" ? text.includes(pattern) : pattern.test(text))) };
  page.on("console", (message) => {
    if (message.type() === "error") problems.push(`console error: ${message.text()}`);
  });
  page.on("pageerror", (error) => problems.push(`uncaught: ${error.stack ?? error.message}`));
  // Error objects arrive without their text, so the page prints it.
  await page.evaluateOnNewDocument(() => {
    const { error } = console;
    console.error = (...all) => error.call(console, ...all.map((each) => (each instanceof Error ? `${each.message}\n${each.stack}` : each)));
  });
  if (as) await context.setCookie({ ...as.cookie, domain: new URL(at).hostname, path: "/", httpOnly: true, secure: false, sameSite: "Lax" });
  opened.push({ context, page });
  await page.goto(at + path);
  return Object.assign(page, driver(page));
}

/**
 * A few actions that wait until the element exists. Puppeteer's locators would wait for frames, and a busy Firefox without a screen may not
 * render any for a long time. An element is given by a selector and by its text.
 */
function driver(page) {
  /** The center of the first visible match, or null. */
  const find = (selector, text) =>
    page.evaluate(
      (selector, text) => {
        for (const element of document.querySelectorAll(selector)) {
          if (text !== null && !element.textContent.includes(text)) continue;
          element.scrollIntoView({ block: "nearest" });
          const { x, y, width, height } = element.getBoundingClientRect();
          if (width > 0 && height > 0) return { x: x + width / 2, y: y + height / 2 };
        }
        return null;
      },
      selector,
      text ?? null,
    );
  const see = async (selector, text) => {
    let place = null;
    await until(`${selector} ${text ?? ""}`, async () => (place = await find(selector, text).catch(() => null)) !== null);
    return place;
  };
  const click = async (selector, text) => {
    // The element moves if a part in front of it is still being loaded.
    let place = await see(selector, text);
    await until(`${selector} ${text ?? ""} is still`, async () => {
      const before = place;
      place = await see(selector, text);
      return place.x === before.x && place.y === before.y;
    });
    await page.mouse.click(place.x, place.y);
  };
  const fill = async (selector, value) => {
    await see(selector);
    await page.evaluate((selector) => {
      const element = document.querySelector(selector);
      element.focus();
      element.select?.();
    }, selector);
    await page.keyboard.press("Backspace");
    await page.keyboard.type(value);
  };
  return { see, click, fill };
}
