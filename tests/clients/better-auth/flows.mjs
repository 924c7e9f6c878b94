// The flows that `record.mjs` records. Names in braces are placeholders: `{base}` for the server's URL, `{mail1.token}` for the token of
// the flow's first mail.

const PASSWORD = "the first password";
const OTHER_PASSWORD = "another password";
const HOUR_SECONDS = 3600;
const DAY_SECONDS = 24 * HOUR_SECONDS;

// The options of better-auth, with their own names. `sends` lists the mail functions that are set.
const CHANGES = { changeEmail: { enabled: true }, deleteUser: { enabled: true } };
const RESET = { revokeSessionsOnPasswordReset: true };
const ALL_MAILS = ["sendVerificationEmail", "sendResetPassword", "sendChangeEmailConfirmation", "sendDeleteAccountVerification"];
const TWO_MAILS = ["sendVerificationEmail", "sendResetPassword"];

export const servers = {
  "all-mails": { ...CHANGES, emailAndPassword: RESET, sends: ALL_MAILS },
  // A change of address is confirmed from the new address. A deletion needs a password or a fresh session.
  "two-mails": { ...CHANGES, emailAndPassword: RESET, sends: TWO_MAILS },
  required: {
    ...CHANGES,
    emailAndPassword: { ...RESET, requireEmailVerification: true },
    emailVerification: { sendOnSignIn: true, autoSignInAfterVerification: true },
    sends: TWO_MAILS,
  },
  "required-without-sign-in": {
    ...CHANGES,
    emailAndPassword: { ...RESET, requireEmailVerification: true },
    sends: TWO_MAILS,
  },
  "update-at-once": {
    ...CHANGES,
    changeEmail: { enabled: true, updateEmailWithoutVerification: true },
    sends: TWO_MAILS,
  },
  "no-mails": { ...CHANGES, sends: [] },
  defaults: { sends: [] },
};

export const flows = [];
const flow = (id, server, about, run) => flows.push({ id, about, server, run });

// ---- steps that many flows begin with --------------------------------------

const signUp = (t, name, browser = name) =>
  t.step(`${name} signs up`, browser, "POST /sign-up/email", { name, email: t.address(name), password: PASSWORD });

const signIn = (t, name, browser, password = PASSWORD, what = `${name} signs in`) =>
  t.step(what, browser, "POST /sign-in/email", { email: t.address(name), password });

const session = (t, browser, what) => t.step(what, browser, "GET /get-session");

const askForLink = (t, name, browser, more) =>
  t.step("a link to verify the address", browser, "POST /send-verification-email", { email: t.address(name), ...more });

/** Makes a user with a verified address. The link has to be the first mail of the flow. */
async function verifiedUser(t, name) {
  await signUp(t, name);
  await askForLink(t, name, name);
  await t.step("the address is verified", name, "GET /verify-email?token={mail1.token}");
}

// ---- verification ----------------------------------------------------------

flow("send-verification", "all-mails", "who gets a link to verify an address", async (t) => {
  await signUp(t, "ada");
  await signUp(t, "bob");
  await askForLink(t, "ada", "ada");
  await askForLink(t, "ada", "ada", { callbackURL: "/welcome?step=2" });
  await t.step("without a session", null, "POST /send-verification-email", { email: t.address("ada") });
  await t.step("in other letters", null, "POST /send-verification-email", { email: t.address("ADA") });
  await t.step("an unknown address", null, "POST /send-verification-email", { email: t.address("nobody") });
  await t.step("the address of somebody else", "ada", "POST /send-verification-email", { email: t.address("bob") });
  await t.step("no address", null, "POST /send-verification-email", {});
  await t.step("no body", null, "POST /send-verification-email");
  await t.step("not an address", null, "POST /send-verification-email", { email: "ada" });
  await t.step("a number", null, "POST /send-verification-email", { email: 7 });
  const leadTo = (what, browser, callbackURL) =>
    t.step(what, browser, "POST /send-verification-email", { email: t.address("ada"), callbackURL });
  await leadTo("a foreign callbackURL", "ada", "https://foreign.example.net/");
  await leadTo("a foreign callbackURL without a session", null, "https://foreign.example.net/");
  await leadTo("a trusted callbackURL", "ada", "https://app.example.com/welcome");
  await leadTo("a number as callbackURL", "ada", 7);
  await t.step("the address is verified", "ada", "GET /verify-email?token={mail1.token}");
  await t.step("a verified address with its session", "ada", "POST /send-verification-email", { email: t.address("ada") });
  await t.step("a verified address without a session", null, "POST /send-verification-email", { email: t.address("ada") });
});

flow("send-verification-off", "no-mails", "a link to verify an address while no mail is set up", async (t) => {
  await signUp(t, "ada");
  await askForLink(t, "ada", "ada");
  await askForLink(t, "nobody", null);
});

flow("verify-email", "all-mails", "a link without callbackURL", async (t) => {
  await signUp(t, "ada");
  await askForLink(t, "ada", "ada");
  await t.step("a good link, in the browser that signed up", "ada", "GET /verify-email?token={mail1.token}");
  await session(t, "ada", "the address is verified, and the session stays");
  await t.step("a used link", "ada", "GET /verify-email?token={mail1.token}");
  await t.step("no token", null, "GET /verify-email");
  await t.step("an empty token", null, "GET /verify-email?token=");
  await t.step("an unknown token", null, "GET /verify-email?token=unknown");
  await t.step("a token that was changed", null, "GET /verify-email?token={mail1.token}x");
  await t.step("with POST", null, "POST /verify-email?token={mail1.token}", {});
});

flow("verify-email-callback", "all-mails", "a link with callbackURL", async (t) => {
  await signUp(t, "ada");
  await askForLink(t, "ada", "ada", { callbackURL: "/welcome?step=2" });
  const link = (token, callback) => `GET /verify-email?token=${token}&callbackURL=${encodeURIComponent(callback)}`;
  await t.step("a foreign callbackURL", null, link("{mail1.token}", "https://foreign.example.net/"));
  await t.step("a callbackURL without a scheme", null, link("{mail1.token}", "//foreign.example.net/"));
  await t.step("a script as callbackURL", null, link("{mail1.token}", "javascript:alert(1)"));
  await session(t, "ada", "nothing is verified yet");
  await t.step("a good link", null, link("{mail1.token}", "/welcome?step=2"));
  await session(t, "ada", "the address is verified");
  await t.step("a used link", null, link("{mail1.token}", "/welcome?step=2"));
  await t.step("an unknown token", null, link("unknown", "/welcome"));
  await t.step("an unknown token, and a callbackURL with a query", null, link("unknown", "/welcome?step=2"));
  await t.step("an unknown token, and a callbackURL with a fragment", null, link("unknown", "/welcome#top"));
  const own = "GET /verify-email?token=unknown&callbackURL={encodedBase}%2Fwelcome";
  await t.step("an unknown token, and a callbackURL of this server", null, own);
  await t.step("an unknown token, and a trusted callbackURL", null, link("unknown", "https://app.example.com/welcome"));
  await t.step("no token", null, "GET /verify-email?callbackURL=%2Fwelcome");
});

flow("verify-email-expired", "all-mails", "a link after its hour", async (t) => {
  await signUp(t, "ada");
  await askForLink(t, "ada", "ada");
  t.waitSeconds(HOUR_SECONDS);
  await t.step("without callbackURL", null, "GET /verify-email?token={mail1.token}");
  await t.step("with callbackURL", null, "GET /verify-email?token={mail1.token}&callbackURL=%2Fwelcome");
  await session(t, "ada", "the address is not verified");
});

flow("verify-email-two-links", "all-mails", "the older of two links", async (t) => {
  await signUp(t, "ada");
  await askForLink(t, "ada", "ada");
  await askForLink(t, "ada", "ada");
  await t.step("the older link", null, "GET /verify-email?token={mail1.token}");
  await t.step("the newer link", null, "GET /verify-email?token={mail2.token}");
});

flow("verify-email-other-kind", "all-mails", "tokens of other mails", async (t) => {
  await signUp(t, "ada");
  await t.step("a reset", null, "POST /request-password-reset", { email: t.address("ada") });
  await t.step("a reset's token", null, "GET /verify-email?token={mail1.token}");
  await askForLink(t, "ada", "ada");
  await t.step("a verification's token", null, "POST /reset-password", { token: "{mail2.token}", newPassword: OTHER_PASSWORD });
  await t.step("a verification's token", null, "GET /reset-password/{mail2.token}?callbackURL=%2Freset");
});

flow("verify-email-deleted", "two-mails", "a link of an account that was deleted", async (t) => {
  await signUp(t, "ada");
  await askForLink(t, "ada", "ada");
  await t.step("ada deletes the account", "ada", "POST /delete-user", { password: PASSWORD });
  await t.step("without callbackURL", null, "GET /verify-email?token={mail1.token}");
  await t.step("with callbackURL", null, "GET /verify-email?token={mail1.token}&callbackURL=%2Fwelcome");
});

// ---- verification is required ------------------------------------------------

flow("required", "required", "sign-in waits for the verified address", async (t) => {
  await t.step("ada signs up", "ada", "POST /sign-up/email", {
    name: "ada",
    email: t.address("ada"),
    password: PASSWORD,
    callbackURL: "/welcome",
  });
  await session(t, "ada", "there is no session");
  await signIn(t, "ada", "ada", PASSWORD, "ada signs in before");
  await t.step("ada signs in before, with callbackURL", "ada", "POST /sign-in/email", {
    email: t.address("ada"),
    password: PASSWORD,
    callbackURL: "/welcome",
  });
  await signIn(t, "ada", "ada", OTHER_PASSWORD, "with a wrong password");
  await t.step("a good link", "ada", "GET /verify-email?token={mail1.token}&callbackURL=%2Fwelcome");
  await session(t, "ada", "the link signs in");
  await t.step("a used link, in another browser", "other", "GET /verify-email?token={mail1.token}&callbackURL=%2Fwelcome");
  await session(t, "other", "a used link does not sign in");
  await t.step("the link of the first sign-in", "other", "GET /verify-email?token={mail2.token}");
  await session(t, "other", "the address was verified before, so it does not sign in");
  await signIn(t, "ada", "other", PASSWORD, "ada signs in after");
});

flow("required-json", "required", "a link without callbackURL signs in too", async (t) => {
  await signUp(t, "ada");
  await t.step("a good link, in another browser", "other", "GET /verify-email?token={mail1.token}");
  await session(t, "other", "the browser with the link has a session");
  await session(t, "ada", "the browser that signed up has none");
});

flow("required-taken", "required", "a taken address is not shown", async (t) => {
  await signUp(t, "ada");
  await t.step("the address again", "other", "POST /sign-up/email", {
    name: "other",
    email: t.address("ADA"),
    password: OTHER_PASSWORD,
    image: "https://example.com/face.png",
  });
  await signIn(t, "ada", "other", OTHER_PASSWORD, "the other password does not sign in");
  await t.step("the address is verified", "ada", "GET /verify-email?token={mail1.token}");
  await t.step("the address again, now verified", "other", "POST /sign-up/email", {
    name: "other",
    email: t.address("ada"),
    password: OTHER_PASSWORD,
  });
  await t.step("a short password, with a taken address", "other", "POST /sign-up/email", {
    name: "other",
    email: t.address("ada"),
    password: "short",
  });
});

flow("required-reset", "required", "a reset before the address is verified", async (t) => {
  await signUp(t, "ada");
  await t.step("a reset", null, "POST /request-password-reset", { email: t.address("ada"), redirectTo: "/reset" });
  await t.step("a new password", null, "POST /reset-password", { token: "{mail2.token}", newPassword: OTHER_PASSWORD });
  await signIn(t, "ada", "ada", OTHER_PASSWORD, "the reset does not verify the address");
});

flow("required-without-sign-in", "required-without-sign-in", "the link does not sign in, and sign-in mails none", async (t) => {
  await signUp(t, "ada");
  await signIn(t, "ada", "ada", PASSWORD, "ada signs in before");
  await t.step("a good link", "ada", "GET /verify-email?token={mail1.token}");
  await session(t, "ada", "there is no session");
  await signIn(t, "ada", "ada", PASSWORD, "ada signs in after");
});

flow("required-guest", "required", "a guest signs up", async (t) => {
  await t.step("a guest", "guest", "POST /sign-in/anonymous", {});
  await t.step("the guest asks for a link", "guest", "POST /send-verification-email", { email: t.address("ada") });
  await signUp(t, "ada", "guest");
  await session(t, "guest", "the browser is still the guest");
  await t.step("a good link, in the guest's browser", "guest", "GET /verify-email?token={mail1.token}&callbackURL=%2F");
  await session(t, "guest", "the browser is ada");
});

flow("sign-up-taken", "all-mails", "a taken address while verification is not required", async (t) => {
  await signUp(t, "ada");
  await signUp(t, "ada", "other");
});

// ---- reset of a password -------------------------------------------------------

flow("request-reset", "all-mails", "who gets a link to reset a password", async (t) => {
  await signUp(t, "ada");
  const ask = (what, body) => t.step(what, null, "POST /request-password-reset", body);
  await ask("a known address", { email: t.address("ada") });
  await ask("a known address in other letters", { email: t.address("ADA") });
  await ask("an unknown address", { email: t.address("nobody") });
  await ask("a redirectTo", { email: t.address("ada"), redirectTo: "/reset?step=2" });
  await ask("a redirectTo of this server", { email: t.address("ada"), redirectTo: "{base}/reset" });
  await ask("a trusted redirectTo", { email: t.address("ada"), redirectTo: "https://app.example.com/reset" });
  const foreign = "https://foreign.example.net/";
  await ask("a foreign redirectTo", { email: t.address("ada"), redirectTo: foreign });
  await ask("a foreign redirectTo, and an unknown address", { email: t.address("nobody"), redirectTo: foreign });
  await ask("a redirectTo without a scheme", { email: t.address("ada"), redirectTo: "//foreign.example.net/" });
  await ask("an empty redirectTo", { email: t.address("ada"), redirectTo: "" });
  await ask("a number as redirectTo", { email: t.address("ada"), redirectTo: 7 });
  await ask("not an address", { email: "ada" });
  await ask("no address", {});
  await ask("no body");
  await t.step("with a session", "ada", "POST /request-password-reset", { email: t.address("ada") });
  await t.step("a guest", "guest", "POST /sign-in/anonymous", {});
  await ask("the address of a guest", { email: "{guest1.email}" });
  await t.step("the name of older versions", null, "POST /forget-password", { email: t.address("ada") });
});

flow("request-reset-off", "no-mails", "a reset while no mail is set up", async (t) => {
  await signUp(t, "ada");
  await t.step("a known address", null, "POST /request-password-reset", { email: t.address("ada") });
  await t.step("an unknown address", null, "POST /request-password-reset", { email: t.address("nobody") });
  await t.step("a link's address", null, "GET /reset-password/unknown?callbackURL=%2Freset");
  await t.step("an unknown token", null, "POST /reset-password", { token: "unknown", newPassword: OTHER_PASSWORD });
});

flow("reset-link", "all-mails", "the address that a mail of a reset leads to", async (t) => {
  await signUp(t, "ada");
  await t.step("a reset", null, "POST /request-password-reset", { email: t.address("ada"), redirectTo: "/reset?step=2" });
  const open = (what, token, callback) => {
    const query = callback === undefined ? "" : `?callbackURL=${encodeURIComponent(callback)}`;
    return t.step(what, null, `GET /reset-password/${token}${query}`);
  };
  await open("a good link", "{mail1.token}", "/reset?step=2");
  await open("the same link again", "{mail1.token}", "/reset?step=2");
  await open("a callbackURL with a fragment", "{mail1.token}", "/reset#top");
  await open("a trusted callbackURL", "{mail1.token}", "https://app.example.com/reset");
  await open("a foreign callbackURL", "{mail1.token}", "https://foreign.example.net/");
  await open("an empty callbackURL", "{mail1.token}", "");
  await open("no callbackURL", "{mail1.token}");
  await open("an unknown token", "unknown", "/reset?step=2");
  await open("an unknown token, and a trusted callbackURL", "unknown", "https://app.example.com/reset");
  await open("an unknown token, and no callbackURL", "unknown");
  await t.step("a new password", null, "POST /reset-password", { token: "{mail1.token}", newPassword: OTHER_PASSWORD });
  await open("a used link", "{mail1.token}", "/reset");
});

flow("reset-password", "all-mails", "a new password", async (t) => {
  await signUp(t, "ada");
  await t.step("a reset", null, "POST /request-password-reset", { email: t.address("ada"), redirectTo: "/reset" });
  const set = (what, body, query = "") => t.step(what, null, `POST /reset-password${query}`, body);
  await set("no token", { newPassword: OTHER_PASSWORD });
  await set("an empty token", { token: "", newPassword: OTHER_PASSWORD });
  await set("an unknown token", { token: "unknown", newPassword: OTHER_PASSWORD });
  await set("an unknown token in the query", { newPassword: OTHER_PASSWORD }, "?token=unknown");
  await set("an unknown token, and a short password", { token: "unknown", newPassword: "short" });
  await set("no password", { token: "{mail1.token}" });
  await set("no password and no token", {});
  await set("no body", undefined);
  await set("a number as password", { token: "{mail1.token}", newPassword: 12345678 });
  await set("a short password", { token: "{mail1.token}", newPassword: "short" });
  await set("a long password", { token: "{mail1.token}", newPassword: "long".repeat(33) });
  await set("a good token", { token: "{mail1.token}", newPassword: OTHER_PASSWORD });
  await set("a used token", { token: "{mail1.token}", newPassword: "a third password" });
  await session(t, "ada", "the session has ended");
  await signIn(t, "ada", "ada", PASSWORD, "the old password");
  await signIn(t, "ada", "ada", OTHER_PASSWORD, "the new password");
  await session(t, "ada", "the reset does not verify the address");
});

flow("reset-password-query", "all-mails", "the token in the query", async (t) => {
  await signUp(t, "ada");
  await t.step("a reset", null, "POST /request-password-reset", { email: t.address("ada") });
  await t.step("a good token", null, "POST /reset-password?token={mail1.token}", { newPassword: OTHER_PASSWORD });
  await signIn(t, "ada", "ada", OTHER_PASSWORD, "the new password");
});

flow("reset-password-both", "all-mails", "a token in the body is taken before one in the query", async (t) => {
  await signUp(t, "ada");
  await t.step("a reset", null, "POST /request-password-reset", { email: t.address("ada") });
  await t.step("an unknown token in the body", null, "POST /reset-password?token={mail1.token}", {
    token: "unknown",
    newPassword: OTHER_PASSWORD,
  });
});

flow("reset-password-two-links", "all-mails", "the older of two links, and the newer after it", async (t) => {
  await signUp(t, "ada");
  await t.step("a reset", null, "POST /request-password-reset", { email: t.address("ada") });
  await t.step("another reset", null, "POST /request-password-reset", { email: t.address("ada") });
  await t.step("the older token", null, "POST /reset-password", { token: "{mail1.token}", newPassword: OTHER_PASSWORD });
  await t.step("the newer token", null, "POST /reset-password", { token: "{mail2.token}", newPassword: "a third password" });
});

flow("reset-password-expired", "all-mails", "a link after its hour", async (t) => {
  await signUp(t, "ada");
  await t.step("a reset", null, "POST /request-password-reset", { email: t.address("ada"), redirectTo: "/reset" });
  t.waitSeconds(HOUR_SECONDS);
  await t.step("the link", null, "GET /reset-password/{mail1.token}?callbackURL=%2Freset");
  await t.step("the token", null, "POST /reset-password", { token: "{mail1.token}", newPassword: OTHER_PASSWORD });
  await signIn(t, "ada", "ada", PASSWORD, "the old password");
});

flow("reset-password-deleted", "two-mails", "a link of an account that was deleted", async (t) => {
  await signUp(t, "ada");
  await t.step("a reset", null, "POST /request-password-reset", { email: t.address("ada"), redirectTo: "/reset" });
  await t.step("ada deletes the account", "ada", "POST /delete-user", { password: PASSWORD });
  await t.step("the link", null, "GET /reset-password/{mail1.token}?callbackURL=%2Freset");
  await t.step("the token", null, "POST /reset-password", { token: "{mail1.token}", newPassword: OTHER_PASSWORD });
});

// ---- change of address ---------------------------------------------------------

flow("change-email", "two-mails", "the new address confirms", async (t) => {
  await verifiedUser(t, "ada");
  await signUp(t, "bob");
  const change = (what, body, browser = "ada") => t.step(what, browser, "POST /change-email", body);
  await change("no session", { newEmail: t.address("new") }, null);
  await change("no address", {});
  await change("no body", undefined);
  await change("not an address", { newEmail: "new" });
  await change("the same address", { newEmail: t.address("ada") });
  await change("the same address in other letters", { newEmail: t.address("ADA") });
  await change("a taken address", { newEmail: t.address("bob") });
  await change("a foreign callbackURL", { newEmail: t.address("new"), callbackURL: "https://foreign.example.net/" });
  await change("a new address", { newEmail: t.address("NEW"), callbackURL: "/account" });
  await session(t, "ada", "the old address stays until then");
  await t.step("a link, in the browser of somebody else", "bob", "GET /verify-email?token={mail2.token}");
  await t.step("the same, with callbackURL", "bob", "GET /verify-email?token={mail2.token}&callbackURL=%2Faccount");
  await t.step("a good link", "ada", "GET /verify-email?token={mail2.token}&callbackURL=%2Faccount");
  await session(t, "ada", "the new address");
  await t.step("a used link", "ada", "GET /verify-email?token={mail2.token}&callbackURL=%2Faccount");
  await t.step("a used link without callbackURL", "ada", "GET /verify-email?token={mail2.token}");
  await signIn(t, "ada", "other", PASSWORD, "the old address");
  await signIn(t, "new", "other", PASSWORD, "the new address");
});

flow("change-email-json", "two-mails", "a link without callbackURL, opened elsewhere", async (t) => {
  await verifiedUser(t, "ada");
  await t.step("a new address", "ada", "POST /change-email", { newEmail: t.address("new") });
  await t.step("a good link", "elsewhere", "GET /verify-email?token={mail2.token}");
  await session(t, "elsewhere", "the link signs in");
  await session(t, "ada", "the session stays");
});

flow("change-email-unverified", "two-mails", "an address that was never verified", async (t) => {
  await signUp(t, "ada");
  await t.step("a new address", "ada", "POST /change-email", { newEmail: t.address("new") });
  await session(t, "ada", "the old address stays until then");
  await t.step("a good link", "ada", "GET /verify-email?token={mail1.token}");
  await session(t, "ada", "the new address");
});

flow("change-email-expired", "two-mails", "a link after its hour", async (t) => {
  await verifiedUser(t, "ada");
  await t.step("a new address", "ada", "POST /change-email", { newEmail: t.address("new") });
  t.waitSeconds(HOUR_SECONDS);
  await t.step("without callbackURL", "ada", "GET /verify-email?token={mail2.token}");
  await t.step("with callbackURL", "ada", "GET /verify-email?token={mail2.token}&callbackURL=%2Faccount");
});

flow("change-email-two-links", "two-mails", "two changes are asked for", async (t) => {
  await verifiedUser(t, "ada");
  await t.step("a new address", "ada", "POST /change-email", { newEmail: t.address("new") });
  await t.step("another new address", "ada", "POST /change-email", { newEmail: t.address("newer") });
  await t.step("the newer link", "ada", "GET /verify-email?token={mail3.token}");
  await t.step("the older link", "ada", "GET /verify-email?token={mail2.token}");
});

flow("change-email-confirmation", "all-mails", "the old address confirms, then the new one", async (t) => {
  await verifiedUser(t, "ada");
  await t.step("a new address", "ada", "POST /change-email", { newEmail: t.address("new"), callbackURL: "/account" });
  await t.step("the old address confirms", "ada", "GET /verify-email?token={mail2.token}&callbackURL=%2Faccount");
  await session(t, "ada", "the old address stays until then");
  await t.step("the new address confirms", "ada", "GET /verify-email?token={mail3.token}&callbackURL=%2Faccount");
  await session(t, "ada", "the new address");
});

flow("change-email-at-once", "update-at-once", "an address that was never verified changes at once", async (t) => {
  await signUp(t, "ada");
  await t.step("a new address", "ada", "POST /change-email", { newEmail: t.address("new") });
  await session(t, "ada", "the new address");
  await t.step("a good link", "ada", "GET /verify-email?token={mail1.token}");
});

flow("change-email-guest", "two-mails", "a guest", async (t) => {
  await t.step("a guest", "guest", "POST /sign-in/anonymous", {});
  await t.step("a new address", "guest", "POST /change-email", { newEmail: t.address("new") });
});

flow("change-email-off", "no-mails", "a change while no mail is set up", async (t) => {
  await signUp(t, "ada");
  await t.step("a new address", "ada", "POST /change-email", { newEmail: t.address("new") });
});

flow("change-email-disabled", "defaults", "a change that is not enabled", async (t) => {
  await signUp(t, "ada");
  await t.step("a new address", "ada", "POST /change-email", { newEmail: t.address("new") });
});

// ---- the own password ------------------------------------------------------------

flow("verify-password", "all-mails", "the own password is checked", async (t) => {
  await signUp(t, "ada");
  const verify = (what, browser, body) => t.step(what, browser, "POST /verify-password", body);
  await verify("the right password", "ada", { password: PASSWORD });
  await verify("a wrong password", "ada", { password: OTHER_PASSWORD });
  await verify("an empty password", "ada", { password: "" });
  await verify("a long password", "ada", { password: "long".repeat(33) });
  await verify("no password", "ada", {});
  await verify("a number", "ada", { password: 7 });
  await verify("no body", "ada");
  await verify("no session", null, { password: PASSWORD });
  await verify("no session and no password", null, {});
  await t.step("a guest", "guest", "POST /sign-in/anonymous", {});
  await verify("a guest has no password", "guest", { password: PASSWORD });
});

// ---- deletion of oneself ---------------------------------------------------------

flow("delete-user", "two-mails", "a deletion with a password", async (t) => {
  await signUp(t, "ada");
  await signIn(t, "ada", "other");
  const remove = (what, browser, body) => t.step(what, browser, "POST /delete-user", body);
  await remove("no session", null, { password: PASSWORD });
  await remove("a wrong password", "ada", { password: OTHER_PASSWORD });
  await remove("a number", "ada", { password: 7 });
  await remove("an unknown token", "ada", { token: "unknown" });
  await remove("a foreign callbackURL", "ada", { callbackURL: "https://foreign.example.net/" });
  await session(t, "ada", "nothing is deleted yet");
  await remove("the right password", "ada", { password: PASSWORD });
  await session(t, "ada", "the session has ended");
  await session(t, "other", "the other session has ended");
  await signIn(t, "ada", "ada", PASSWORD, "the account does not exist");
  await signUp(t, "ada");
});

flow("delete-user-fresh", "two-mails", "a deletion with a fresh session", async (t) => {
  await signUp(t, "ada");
  await t.step("without a password", "ada", "POST /delete-user", {});
  await session(t, "ada", "the session has ended");
});

flow("delete-user-callback-url", "two-mails", "a deletion at once ignores callbackURL", async (t) => {
  await signUp(t, "ada");
  await t.step("without a password", "ada", "POST /delete-user", { callbackURL: "/goodbye" });
});

flow("delete-user-no-body", "two-mails", "a deletion without a body", async (t) => {
  await signUp(t, "ada");
  await t.step("no body", "ada", "POST /delete-user");
});

flow("delete-user-stale", "two-mails", "a deletion with a session that is older than a day", async (t) => {
  await signUp(t, "ada");
  t.waitSeconds(DAY_SECONDS);
  await t.step("without a password", "ada", "POST /delete-user", {});
  await t.step("a wrong password", "ada", "POST /delete-user", { password: OTHER_PASSWORD });
  await t.step("the right password", "ada", "POST /delete-user", { password: PASSWORD });
});

flow("delete-user-guest", "two-mails", "a guest", async (t) => {
  await t.step("a guest", "guest", "POST /sign-in/anonymous", {});
  await t.step("with a password", "guest", "POST /delete-user", { password: PASSWORD });
  await t.step("without a password", "guest", "POST /delete-user", {});
});

flow("delete-user-link", "all-mails", "a deletion that a link confirms", async (t) => {
  await signUp(t, "ada");
  await signUp(t, "bob");
  const open = (what, browser, query) => t.step(what, browser, `GET /delete-user/callback${query}`);
  await t.step("a wrong password", "ada", "POST /delete-user", { password: OTHER_PASSWORD });
  await t.step("the right password", "ada", "POST /delete-user", { password: PASSWORD, callbackURL: "/goodbye" });
  await t.step("without a password", "ada", "POST /delete-user", { callbackURL: "/goodbye" });
  await open("no token", "ada", "");
  await open("an unknown token", "ada", "?token=unknown");
  await open("an unknown token, and a callbackURL", "ada", "?token=unknown&callbackURL=%2Fgoodbye");
  await open("a foreign callbackURL", "ada", "?token={mail1.token}&callbackURL=https%3A%2F%2Fforeign.example.net%2F");
  await open("no session", null, "?token={mail1.token}");
  await open("no session, and a callbackURL", null, "?token={mail1.token}&callbackURL=%2Fgoodbye");
  await open("a good link", "ada", "?token={mail1.token}&callbackURL=%2Fgoodbye");
  await session(t, "ada", "the session has ended");
  await open("a used link", "ada", "?token={mail1.token}&callbackURL=%2Fgoodbye");
  await open("the other link", "bob", "?token={mail2.token}");
  await session(t, "bob", "bob stays");
  await signIn(t, "ada", "ada", PASSWORD, "the account does not exist");
});

flow("delete-user-link-json", "all-mails", "a link without callbackURL", async (t) => {
  await signUp(t, "ada");
  await t.step("a link", "ada", "POST /delete-user", {});
  await t.step("a good link", "ada", "GET /delete-user/callback?token={mail1.token}");
  await session(t, "ada", "the session has ended");
});

flow("delete-user-link-foreign", "all-mails", "a link in the browser of somebody else", async (t) => {
  await signUp(t, "ada");
  await signUp(t, "bob");
  await t.step("a link", "ada", "POST /delete-user", {});
  await t.step("the link of ada", "bob", "GET /delete-user/callback?token={mail1.token}");
  await t.step("the link, which was used up", "ada", "GET /delete-user/callback?token={mail1.token}");
});

flow("delete-user-token", "all-mails", "the token of a mail in the body", async (t) => {
  await signUp(t, "ada");
  await t.step("a link", "ada", "POST /delete-user", {});
  await t.step("an unknown token", "ada", "POST /delete-user", { token: "unknown" });
  await t.step("a good token", "ada", "POST /delete-user", { token: "{mail1.token}" });
  await session(t, "ada", "the session has ended");
});

flow("delete-user-link-after-an-hour", "all-mails", "a link of a deletion lives a day", async (t) => {
  await signUp(t, "ada");
  await t.step("a link", "ada", "POST /delete-user", {});
  t.waitSeconds(HOUR_SECONDS);
  await t.step("after an hour", "ada", "GET /delete-user/callback?token={mail1.token}");
});

flow("delete-user-link-expired", "all-mails", "a link of a deletion after its day", async (t) => {
  await signUp(t, "ada");
  await t.step("a link", "ada", "POST /delete-user", {});
  t.waitSeconds(DAY_SECONDS);
  await t.step("after a day", "ada", "GET /delete-user/callback?token={mail1.token}");
});

flow("delete-user-disabled", "defaults", "a deletion that is not enabled", async (t) => {
  await signUp(t, "ada");
  await t.step("the right password", "ada", "POST /delete-user", { password: PASSWORD });
  await t.step("a link", "ada", "GET /delete-user/callback?token=unknown");
});
