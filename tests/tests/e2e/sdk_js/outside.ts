import { http, secrets, timingSafeEqual } from "@blockbase/sdk";

hook("signed", async (request) => {
  const expected = toHex(hmacSha256(secrets.get("SIGNING_KEY"), request.body));
  if (!timingSafeEqual(request.headers.get("X-Signature") ?? "", expected)) return { status: 401 };
  if (request.params.has("quiet")) return;
  if (request.params.has("fail")) throw new Error("A detail for nobody.");
  return { status: 201, headers: { "x-kind": request.json().kind }, body: "taken" };
});

hook("bytes", (request) => ({ body: request.body }));

action("fetch", { input: { type: "object" } }, ({ url }) => {
  const response = http.post(url, { hello: "you" }, { headers: { "x-from": "a block" } });
  return { status: response.status, ok: response.ok, kind: response.headers.get("Content-Type"), text: response.text() };
});
