/** Installed blocks, as the API shows them. */
import { queryOptions } from "@tanstack/react-query";
import { request } from "../../api/client";
import type { JsonObject, JsonValue } from "../../api/json";
import { retry } from "../users/users";

export interface DataPermission {
  resource: string;
  actions: string[];
  as?: "caller" | "installer";
  rowPolicy?: "own";
}

export interface BlockPermissions {
  data: DataPermission[];
  secrets: string[];
  http: string[];
}

/** What an upgrade asks for beyond the installed version, by the manifest's keys. Lists are empty where it asks for no more. */
export interface NewPermissions extends BlockPermissions {
  subscriptions: JsonObject[];
  webhooks: JsonObject[];
  actions: JsonObject[];
  hooks: JsonObject[];
}

export interface Action {
  name: string;
  description: string;
  input: JsonObject;
  rbac?: { resource: string; action: string };
  timeoutMs?: number;
}

export interface Block {
  name: string;
  version: string;
  digest: string;
  description: string | null;
  enabled: boolean;
  permissions: BlockPermissions;
  actions: Action[];
  hooks: { name: string; description: string }[];
  subscriptions: { event: string; consumer: string; handler: string }[];
  webhooks: { name: string; url: string; topics: string[] }[];
  config: JsonObject;
  /** JSON Schema; null where the block takes no configuration. */
  configSchema: JsonObject | null;
  installedAt: string;
  installedBy: string | null;
  versions: string[];
  suspended: { reason: string; since: string } | null;
}

export interface Inspection {
  manifest: Pick<Block, "name" | "version" | "description" | "actions" | "hooks" | "subscriptions" | "webhooks"> & { license?: string };
  permissions: BlockPermissions;
  sizeBytes: number;
  sha256: string;
  installed: { version: string; digest: string; permissions: BlockPermissions | null } | null;
  differences: { part: string; name: string | null; change: "added" | "removed" | "changed"; before: JsonValue; after: JsonValue; needsConsent: boolean }[];
  /** Null where no version is installed. The page also stands a part that is missing. */
  newPermissions: Partial<NewPermissions> | null;
  problems: { error: string; message: string }[];
}

export interface Use {
  name: string;
  calls: number;
  failed: number;
  timeMsTotal: number;
  timeMsP50: number | null;
  timeMsP95: number | null;
  memoryBytesMax: number;
}

export interface Usage {
  since: string;
  actions: Use[];
  hooks: Use[];
  handlers: Use[];
}

export interface LogLine {
  id: string;
  at: string;
  level: string;
  message: string;
  fields: JsonValue;
  callId: string | null;
}

export const pathOf = (name: string) => `/api/v1/blocks/${encodeURIComponent(name)}`;

export const blocksQuery = queryOptions({
  queryKey: ["blocks"],
  queryFn: async ({ signal }) => (await request<{ data: Block[] }>("GET", "/api/v1/blocks", { signal })).data,
  retry,
});

export const blockQuery = (name: string) =>
  queryOptions({
    queryKey: ["blocks", name],
    queryFn: async ({ signal }) => (await request<{ data: Block }>("GET", pathOf(name), { signal })).data,
    retry,
  });

export const usageQuery = (name: string) =>
  queryOptions({
    queryKey: ["blocks", name, "usage"],
    queryFn: async ({ signal }) => (await request<{ data: Usage }>("GET", `${pathOf(name)}/usage`, { signal })).data,
    refetchInterval: 5_000,
    retry,
  });

/** Whether an upgrade asks for anything that the installed version does not have. */
export const asksForMore = (added: Inspection["newPermissions"]): boolean => added !== null && Object.values(added).some((entries) => entries.length > 0);

/** What a permission of a block means, in a sentence. */
export function inWords({ resource, actions, as, rowPolicy }: DataPermission): string {
  const what = resource === "*" ? "any object" : `the object ${resource}`;
  const whose = as === "caller" ? ", only as far as whoever calls it may" : ", with your rights";
  return `${actions.map((action) => (action === "manage" ? "do everything with" : action)).join(", ")} records of ${what}${rowPolicy === "own" ? ", in rows of whoever calls it" : ""}${whose}`;
}
