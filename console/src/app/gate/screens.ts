/** What is shown to somebody who is not signed in. The code of the two screens is loaded when one of them is needed. */
import { later } from "../../components/later";

export const SignIn = later(() => import("./SignIn").then((loaded) => loaded.SignIn));
export const FirstRun = later(() => import("./FirstRun").then((loaded) => loaded.FirstRun));

/** The page of the link in a mail. Everybody may open it, signed in or not. */
export const SET_PASSWORD = "/set-password";
