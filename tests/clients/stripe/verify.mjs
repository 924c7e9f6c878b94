// Checks a received webhook with the unmodified `stripe` library, which has to accept it and to refuse changed ones.
// Usage: node verify.mjs <file of the raw body> <value of x-svc-signature> <secret that signed>...
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import Stripe from "stripe";

const [file, header, ...secrets] = process.argv.slice(2);
if (!secrets.length) throw new Error("usage: node verify.mjs <body file> <header> <secret>...");
const body = readFileSync(file);
const { webhooks, errors } = new Stripe("sk_test_unused");
const signedAt = Number(/^t=(\d+),/.exec(header)[1]);
const TOLERANCE = 300;

function accepts(what, secret, { from = body, seconds = 0 } = {}) {
  const event = webhooks.constructEvent(from, header, secret, TOLERANCE, undefined, (signedAt + seconds) * 1000);
  assert.deepEqual(event, JSON.parse(body.toString()));
  console.log("accepts", what);
}

function refuses(what, why, secret, { from = body, signature = header, seconds = 0 } = {}) {
  const call = () => webhooks.constructEvent(from, signature, secret, TOLERANCE, undefined, (signedAt + seconds) * 1000);
  assert.throws(call, (error) => error instanceof errors.StripeSignatureVerificationError && why.test(error.message));
  console.log("refuses", what);
}

const MISMATCH = /No signatures found matching/;
for (const secret of secrets) {
  // Calls it like an endpoint, with the current time.
  assert.equal(webhooks.constructEvent(body, header, secret).id, JSON.parse(body.toString()).id);
  accepts("its secret", secret);
  accepts("the body as text", secret, { from: body.toString() });
  accepts("a timestamp at the tolerance's end", secret, { seconds: TOLERANCE });
  refuses("a stale timestamp", /outside the tolerance/, secret, { seconds: TOLERANCE + 1 });
  const later = header.replace(`t=${signedAt}`, `t=${signedAt + 1}`);
  refuses("a timestamp that was not signed", MISMATCH, secret, { signature: later });
  const changed = Buffer.from(body);
  changed[changed.length - 3] ^= 1;
  refuses("a changed body", MISMATCH, secret, { from: changed });
  refuses("a body with one byte more", MISMATCH, secret, { from: Buffer.concat([body, Buffer.from("\n")]) });
  refuses("the secret without its prefix", MISMATCH, secret.replace(/^whsec_/, ""));
}
refuses("another secret", MISMATCH, "whsec_of_somebody_else");
