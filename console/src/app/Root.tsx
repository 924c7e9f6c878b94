/** Decides who may enter the console (sign-in, first run, onboarding), and puts the frame around every screen. */
import { useQuery } from "@tanstack/react-query";
import { Navigate, Outlet, useLocation } from "@tanstack/react-router";
import { Suspense, lazy, useEffect, useState } from "react";
import { instanceQuery, meQuery } from "../api/session";
import { isSessionEstablished, sessionEstablished, signInAgain, useSessionLost } from "../api/session-lost";
import type { Me } from "../api/types";
import { useAsked } from "../components/confirm-store";
import { ErrorState } from "../components/ErrorState";
import { Tips } from "../components/Tips";
import { FirstRun, SET_PASSWORD, SignIn } from "./gate/screens";
import { useEver } from "../components/later";
import { failed } from "../components/toast";
import { forgetRefusedLink, useRefusedLink } from "./gate/refused-link";
import { Frame, Shell } from "./shell/Shell";

const ConfirmHost = lazy(() => import("../components/ConfirmHost"));
const SignInOver = lazy(() => import("./gate/SignInOver"));

export function Root() {
  const me = useQuery(meQuery);
  const instance = useQuery(instanceQuery);
  const { pathname, href } = useLocation();
  // Opening this page neither starts nor ends a session.
  const setsPassword = pathname === SET_PASSWORD;
  const lost = useSessionLost();
  const confirmWanted = useEver(useAsked() !== null);
  const isRefused = useRefusedLink();
  const answered = me.data?.authenticated === true;
  // The last person who signed in, until they sign out. If their session ends, the page stays.
  const [person, setPerson] = useState<Me | null>(null);
  if (answered && me.data !== undefined && me.data !== person) setPerson(me.data);
  useEffect(() => {
    if (setsPassword) return;
    if (answered) sessionEstablished(true);
    else if (me.data !== undefined && isSessionEstablished()) void signInAgain();
  }, [answered, me.data, setsPassword]);
  const isConfirmed = me.data?.user?.emailVerified === true;
  useEffect(() => {
    // The sign-in page itself shows this message.
    if (!answered || !isRefused) return;
    forgetRefusedLink();
    failed("The link is no longer valid", new Error(`It was used already, or it has expired. ${isConfirmed ? "Your address is confirmed." : "You can ask for another one on the page of your account."}`));
  }, [answered, isRefused, isConfirmed]);
  const signedIn = answered || (person !== null && (lost || isSessionEstablished()));

  if (setsPassword)
    return (
      <Suspense fallback={null}>
        <Outlet />
      </Suspense>
    );
  if (me.data === undefined) {
    if (me.isError) return <Frame>{<ErrorState error={me.error} title="The console could not be opened" onRetry={() => void me.refetch()} />}</Frame>;
    return <Frame />;
  }
  if (!signedIn) {
    if (instance.data === undefined) {
      if (instance.isError) return <Frame>{<ErrorState error={instance.error} title="The console could not be opened" onRetry={() => void instance.refetch()} />}</Frame>;
      return null;
    }
    return instance.data.needsAdmin ? <FirstRun instance={instance.data} /> : <SignIn instance={instance.data} />;
  }
  if (me.data.pendingClaim === true) {
    if (pathname !== "/onboarding") return <Navigate to="/onboarding" search={{ to: href }} replace />;
    return (
      <Suspense fallback={null}>
        <Outlet />
      </Suspense>
    );
  }
  if (pathname === "/onboarding") return <Navigate to="/" replace />;
  return (
    <>
      <Tips />
      <Shell>
        <Outlet />
      </Shell>
      {confirmWanted && (
        <Suspense fallback={null}>
          <ConfirmHost />
        </Suspense>
      )}
      {lost && person !== null && (
        <Suspense fallback={null}>
          <SignInOver me={person} />
        </Suspense>
      )}
    </>
  );
}
