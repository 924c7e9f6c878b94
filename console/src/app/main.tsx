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
import { type ReactNode, StrictMode, Suspense, lazy } from "react";
import { createRoot } from "react-dom/client";
import { useEver } from "../components/later";
import { colorSchemeManager } from "./color-scheme";
import { loadFirstScreen } from "./first-screen";
import { queryClient, router } from "./router";
import { Frame } from "./shell/Shell";
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

const manager = colorSchemeManager();
const root = createRoot(document.getElementById("root")!);

function show(page: ReactNode) {
  root.render(
    <StrictMode>
      <MantineProvider theme={theme} cssVariablesResolver={cssVariables} defaultColorScheme="auto" colorSchemeManager={manager} getStyleNonce={() => nonce} deduplicateCssVariables>
        <QueryClientProvider client={queryClient}>
          {page}
          <Toasts />
        </QueryClientProvider>
      </MantineProvider>
    </StrictMode>,
  );
}

show(<Frame />);
void loadFirstScreen().then(() => show(<RouterProvider router={router} />));
