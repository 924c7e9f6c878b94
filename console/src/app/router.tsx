/**
 * All addresses of the console. The component of a screen is loaded with its first visit. The `search.ts` of its folder reads the search
 * parameters. It is small and always loaded.
 */
import { QueryClient } from "@tanstack/react-query";
import { createRootRouteWithContext, createRoute, createRouter, lazyRouteComponent, parseSearchWith, stringifySearchWith } from "@tanstack/react-router";
import { isApiError } from "../api/errors";
import { ErrorState } from "../components/ErrorState";
import { Page } from "../components/Page";
import { SkeletonRows } from "../components/Skeleton";
import { readApiSearch } from "../screens/reference/search";
import { readBlockSearch, readBlocksSearch, readInstallBlockSearch } from "../screens/blocks/search";
import { readDeliveriesSearch } from "../screens/deliveries/search";
import { readEventsSearch } from "../screens/events/search";
import { readHomeSearch } from "../screens/home/search";
import { readKeysSearch } from "../screens/keys/search";
import { readNewObjectSearch, readObjectSearch, readObjectsSearch } from "../screens/objects/search";
import { readNewRecordSearch, readRecordSearch } from "../screens/record/search";
import { readRecordsSearch } from "../screens/records/search";
import { readRoleSearch, readRolesSearch } from "../screens/roles/search";
import { readSettingsSearch } from "../screens/settings/search";
import { readTasksSearch } from "../screens/tasks/search";
import { readUsersSearch } from "../screens/users/search";
import { readWebhooksSearch } from "../screens/webhooks/search";
import { Root } from "./Root";
import { SET_PASSWORD } from "./gate/screens";
import { NotFound } from "./shell/NotFound";
import { text, type RawSearch } from "../api/search";

export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      // An error response is final, except 502 and above. For those, and without a response, the query is sent again.
      retry: (failures, error) => failures < 2 && (!isApiError(error) || error.status === 0 || error.status >= 502),
      networkMode: "always",
    },
    mutations: { networkMode: "always" },
  },
});

const root = createRootRouteWithContext<{ queryClient: QueryClient }>()({ component: Root, notFoundComponent: NotFound });
const parent = { getParentRoute: () => root };

const routes = [
  createRoute({ ...parent, path: "/", validateSearch: readHomeSearch, component: lazyRouteComponent(() => import("../screens/home"), "HomeScreen") }),
  createRoute({ ...parent, path: "/objects", validateSearch: readObjectsSearch, component: lazyRouteComponent(() => import("../screens/objects/list/ObjectsScreen"), "ObjectsScreen") }),
  createRoute({ ...parent, path: "/objects/new", validateSearch: readNewObjectSearch, component: lazyRouteComponent(() => import("../screens/objects/create/NewObjectScreen"), "NewObjectScreen") }),
  createRoute({ ...parent, path: "/objects/$object", validateSearch: readObjectSearch, component: lazyRouteComponent(() => import("../screens/objects/object/ObjectScreen"), "ObjectScreen") }),
  createRoute({ ...parent, path: "/data/$object", validateSearch: readRecordsSearch, component: lazyRouteComponent(() => import("../screens/records"), "RecordsScreen") }),
  createRoute({ ...parent, path: "/data/$object/new", validateSearch: readNewRecordSearch, component: lazyRouteComponent(() => import("../screens/record"), "NewRecordScreen") }),
  createRoute({ ...parent, path: "/data/$object/$id", validateSearch: readRecordSearch, component: lazyRouteComponent(() => import("../screens/record"), "RecordScreen") }),
  createRoute({ ...parent, path: "/events", validateSearch: readEventsSearch, component: lazyRouteComponent(() => import("../screens/events"), "EventsScreen") }),
  createRoute({ ...parent, path: "/deliveries", validateSearch: readDeliveriesSearch, component: lazyRouteComponent(() => import("../screens/deliveries"), "DeliveriesScreen") }),
  createRoute({ ...parent, path: "/webhooks", validateSearch: readWebhooksSearch, component: lazyRouteComponent(() => import("../screens/webhooks"), "WebhooksScreen") }),
  createRoute({ ...parent, path: "/blocks", validateSearch: readBlocksSearch, component: lazyRouteComponent(() => import("../screens/blocks"), "BlocksScreen") }),
  createRoute({ ...parent, path: "/blocks/install", validateSearch: readInstallBlockSearch, component: lazyRouteComponent(() => import("../screens/blocks"), "InstallBlockScreen") }),
  createRoute({ ...parent, path: "/blocks/$block", validateSearch: readBlockSearch, component: lazyRouteComponent(() => import("../screens/blocks"), "BlockScreen") }),
  createRoute({ ...parent, path: "/users", validateSearch: readUsersSearch, component: lazyRouteComponent(() => import("../screens/users"), "UsersScreen") }),
  createRoute({ ...parent, path: "/roles", validateSearch: readRolesSearch, component: lazyRouteComponent(() => import("../screens/roles"), "RolesScreen") }),
  createRoute({ ...parent, path: "/roles/$role", validateSearch: readRoleSearch, component: lazyRouteComponent(() => import("../screens/roles"), "RoleScreen") }),
  createRoute({ ...parent, path: "/keys", validateSearch: readKeysSearch, component: lazyRouteComponent(() => import("../screens/keys"), "KeysScreen") }),
  createRoute({ ...parent, path: "/tasks", validateSearch: readTasksSearch, component: lazyRouteComponent(() => import("../screens/tasks"), "TasksScreen") }),
  createRoute({ ...parent, path: "/api", validateSearch: readApiSearch, component: lazyRouteComponent(() => import("../screens/reference"), "ApiScreen") }),
  createRoute({ ...parent, path: "/settings", validateSearch: readSettingsSearch, component: lazyRouteComponent(() => import("../screens/settings"), "SettingsScreen") }),
  createRoute({ ...parent, path: "/account", component: lazyRouteComponent(() => import("../screens/account"), "AccountScreen") }),
  createRoute({ ...parent, path: SET_PASSWORD, component: lazyRouteComponent(() => import("./gate/SetPassword"), "SetPassword") }),
  createRoute({
    ...parent,
    path: "/onboarding",
    validateSearch: (raw: RawSearch): { to?: string } => {
      const to = text(raw.to);
      return to === undefined ? {} : { to };
    },
    component: lazyRouteComponent(() => import("./gate/Onboarding"), "Onboarding"),
  }),
] as const;

/** Parses a search parameter. Lists and objects stay text. The code that uses them parses them and keeps all digits of their numbers. */
function searchValue(text: string): unknown {
  if (/^\s*[[{]/.test(text)) throw new SyntaxError("It is read where it is used.");
  return JSON.parse(text);
}

export const router = createRouter({
  parseSearch: parseSearchWith(searchValue),
  stringifySearch: stringifySearchWith(JSON.stringify, searchValue),
  routeTree: root.addChildren(routes as unknown as [...typeof routes]),
  basepath: "/admin",
  context: { queryClient },
  defaultPreload: "intent",
  defaultPreloadDelay: 60,
  defaultPendingMs: 200,
  defaultPendingComponent: () => <SkeletonRows />,
  defaultErrorComponent: ({ error, reset }) => (
    <Page title="This page failed">
      <ErrorState error={error} onRetry={reset} />
    </Page>
  ),
  scrollRestoration: true,
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}
