import "./mantine.css";
import "./global.css";
// Before the router reads the address.
import "./gate/link-token";
import "./gate/refused-link";
import { nonce } from "./nonce";
import { MantineProvider } from "@mantine/core";
import { useNotifications } from "@mantine/notifications";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode, Suspense, lazy } from "react";
import { createRoot } from "react-dom/client";
import { instanceQuery, meQuery } from "../api/session";
import { useEver } from "../components/later";
import { colorSchemeManager } from "./color-scheme";
import { queryClient, router } from "./router";
import { cssVariables, theme } from "./theme";

const Notifications = lazy(() => import("./Notifications"));

/** Toasts, loaded with the first of them. */
function Toasts() {
  const isWanted = useEver(useNotifications().notifications.length > 0);
  return (
    isWanted && (
      <Suspense fallback={null}>
        <Notifications />
      </Suspense>
    )
  );
}

// What decides the first screen is asked for while the code of that screen is on its way.
void queryClient.prefetchQuery(meQuery);
void queryClient.prefetchQuery(instanceQuery);

const manager = colorSchemeManager();

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <MantineProvider theme={theme} cssVariablesResolver={cssVariables} defaultColorScheme="auto" colorSchemeManager={manager} getStyleNonce={() => nonce} deduplicateCssVariables>
      <QueryClientProvider client={queryClient}>
        <RouterProvider router={router} />
        <Toasts />
      </QueryClientProvider>
    </MantineProvider>
  </StrictMode>,
);
