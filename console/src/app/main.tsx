import "./mantine.css";
import "./global.css";
// This has to run before the router reads the address.
import "./gate/link-token";
import "./gate/refused-link";
import { nonce } from "../components/nonce";
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

/** Toasts. Their code is loaded with the first toast. */
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

// The data that decides which screen comes first loads at the same time as the code of that screen.
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
