/** The nonce of this page's content security policy. Code that makes a style element at run time needs it. */
import { setNonce } from "get-nonce";

const meta = document.querySelector<HTMLMetaElement>('meta[property="csp-nonce"]');

/** Empty if the page has no policy, as on the development server. */
export const nonce = meta?.nonce ?? "";

if (nonce !== "") setNonce(nonce);
