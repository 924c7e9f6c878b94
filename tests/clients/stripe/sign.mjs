// Prints the header `Stripe-Signature` that the unmodified `stripe` library makes for a body.
// Usage: node sign.mjs <file of the raw body> <secret> <age in seconds>
import { readFileSync } from "node:fs";
import Stripe from "stripe";

const [file, secret, age] = process.argv.slice(2);
if (!age) throw new Error("usage: node sign.mjs <body file> <secret> <age in seconds>");
const timestamp = Math.floor(Date.now() / 1000) - Number(age);
const payload = readFileSync(file, "utf8");
console.log(new Stripe("sk_test_unused").webhooks.generateTestHeaderString({ payload, secret, timestamp }));
