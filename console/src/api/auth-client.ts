/** The better-auth client, loaded with the first sign-in or sign-out. It keeps nothing in web storage. */
import { createAuthClient } from "better-auth/client";
import { isSessionEstablished, signInAgain } from "./session-lost";

/** As every other request: one that finds its session gone waits for the person to sign in, then is sent again. A password that is reset needs no session. */
async function patientFetch(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const request = new Request(input, init);
  const enters = /\/(sign-(in|up|out)|reset-password)/.test(new URL(request.url).pathname);
  const response = await fetch(request.clone());
  if (response.status !== 401 || enters || !isSessionEstablished()) return response;
  await signInAgain();
  return fetch(request);
}

export const client = createAuthClient({
  baseURL: location.origin,
  // It would load the page again after a sign-in, at the address that is meant for the links of mail.
  disableDefaultFetchPlugins: true,
  fetchOptions: { credentials: "same-origin", customFetchImpl: patientFetch },
  sessionOptions: { refetchOnWindowFocus: false },
});
