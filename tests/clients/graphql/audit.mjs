// Runs the audits of GraphQL over HTTP from the package `graphql-http` on a running server.
// Usage: node audit.mjs <url of the endpoint> <bearer token>
import { serverAudits } from "graphql-http";

const [url, token] = process.argv.slice(2);
if (!token) throw new Error("usage: node audit.mjs <url> <token>");

const fetchFn = (address, init = {}) => {
  const headers = new Headers(init.headers);
  headers.set("authorization", `Bearer ${token}`);
  return fetch(address, { ...init, headers });
};

const failed = [];
for (const audit of serverAudits({ url, fetchFn })) {
  // An error that is not the verdict of an audit is thrown, for example by the network.
  const result = await audit.fn().catch((problem) => ({ ...audit, status: "error", reason: problem.stack ?? String(problem) }));
  console.log(`${result.status} ${result.id} ${result.name}`);
  if (result.status === "ok") continue;
  const answer = result.response && `${result.response.status} ${result.response.headers.get("content-type")}`;
  const body = await result.response?.text().catch(() => "a body that was read");
  const reason = [result.reason, answer, body].filter(Boolean).join(" | ");
  console.log(`  ${reason}`);
  // Other audits are optional.
  if (/^(MUST|SHOULD)/.test(audit.name) || result.status === "error") failed.push(`${result.id} ${result.name}: ${reason}`);
}
if (failed.length > 0) {
  console.error(failed.join("\n"));
  process.exit(1);
}
