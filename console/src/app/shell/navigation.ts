/** The console's main screens, in the order of the rail. */
import {
  IconActivity,
  IconApi,
  IconClockPlay,
  IconDatabase,
  IconHome,
  IconKey,
  IconPuzzle,
  IconSend,
  IconSettings,
  IconShieldLock,
  IconUsers,
  IconWebhook,
  type TablerIcon,
} from "@tabler/icons-react";

export interface Destination {
  to: "/" | "/objects" | "/events" | "/deliveries" | "/webhooks" | "/blocks" | "/users" | "/roles" | "/keys" | "/tasks" | "/api" | "/settings";
  label: string;
  icon: TablerIcon;
  /** The screen needs read on this resource. Without a resource, everybody who is signed in may open it. */
  resource?: string;
  /** Other words that find the screen. */
  words?: string;
}

export const DESTINATIONS: Destination[] = [
  { to: "/", label: "Home", icon: IconHome, words: "overview start" },
  { to: "/objects", label: "Objects", icon: IconDatabase, words: "schema tables collections fields diagram" },
  { to: "/events", label: "Events", icon: IconActivity, resource: "events", words: "stream outbox live log" },
  { to: "/deliveries", label: "Deliveries", icon: IconSend, resource: "events", words: "retry dead queue" },
  { to: "/webhooks", label: "Webhooks", icon: IconWebhook, resource: "webhooks", words: "subscriptions outbound" },
  { to: "/blocks", label: "Blocks", icon: IconPuzzle, resource: "blocks", words: "plugins wasm actions functions" },
  { to: "/users", label: "Users", icon: IconUsers, resource: "users", words: "accounts sessions ban" },
  { to: "/roles", label: "Roles", icon: IconShieldLock, resource: "roles", words: "permissions grants access" },
  { to: "/keys", label: "Keys", icon: IconKey, resource: "api_keys", words: "api keys tokens" },
  { to: "/tasks", label: "Tasks", icon: IconClockPlay, resource: "tasks", words: "schedule cron jobs" },
  { to: "/api", label: "API", icon: IconApi, words: "openapi rest graphql mcp reference" },
  { to: "/settings", label: "Settings", icon: IconSettings, resource: "settings", words: "status version health disk configuration" },
];
