import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import react from "@vitejs/plugin-react";
import { type Plugin, type ProxyOptions, defineConfig } from "vite";
import { licences } from "./scripts/licences.ts";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const server = process.env.BLOCKBASE_URL ?? "http://127.0.0.1:4000";

/** The file that sets the color scheme before the first paint: hashed, classic, in the head. */
function colorScheme(): Plugin {
  const text = readFileSync(here("scripts/color-scheme.js"), "utf8");
  const name = `color-scheme-${createHash("sha256").update(text).digest("hex").slice(0, 8)}.js`;
  let building = false;
  return {
    name: "color-scheme",
    configResolved(config) {
      building = config.command === "build";
    },
    configureServer(dev) {
      dev.middlewares.use(`/admin/assets/${name}`, (_, answer) => {
        answer.setHeader("content-type", "text/javascript");
        answer.end(text);
      });
    },
    generateBundle() {
      if (building) this.emitFile({ type: "asset", fileName: `assets/${name}`, source: text });
    },
    transformIndexHtml: {
      order: "pre",
      handler: (html) => html.replace("<!--color-scheme-->", `<script vite-ignore src="/admin/assets/${name}"></script>`),
    },
  };
}

// The server compares Origin with its own address, so the proxy speaks in that name.
const proxied: ProxyOptions = { target: server, changeOrigin: true, headers: { origin: new URL(server).origin } };

// The files of the build, by the paths of their modules without endings. `build.rolldownOptions` says how they are used.
const modules = (...paths: string[]) => new RegExp(`/(?:${paths.join("|")})\\.\\w+$`);
/** Small parts that the table of records loads or that nearly every other screen loads. */
const COMMON = modules(
  "src/api/(?!actors|batched|counts|events)[\\w-]+",
  "src/components/(?:CopyAs|Id|SettledInput|Time|short-id|submits)",
  "src/screens/records/(?:list-query|bulk/Bulk\\.module)",
  "@mantine/core/esm/components/(?:Checkbox/CheckIcon|Group/Group|NativeSelect/NativeSelect|Portal/OptionalPortal|Stack/Stack)",
  "@mantine/core/esm/utils/InlineInput/InlineInput",
  "(?:get-auto-contrast-value|get-default-z-index|get-style-object|use-mounted|use-uncontrolled)",
  "react-query/build/modern/useQueries",
);
/** The forms before the sign-in. */
const GATE = modules("src/app/gate/(?:Gate\\.module|GateForm|GatePage|farewell|useSignedIn)", "src/components/AccountFields");
/** Who did what, and how much there is: Home and the histories. */
const ACTORS = modules("src/components/Actor", "src/api/(?:counts|events)");
/** Small parts of the screens that have panes and forms. */
const PARTS = modules(
  "src/components/(?:CodeEditor|FactList|Find|Inspector|StatusBadge|Value|typing|useDescription|useReturnedFocus)",
  "src/screens/record/dependents",
  "@mantine/core/esm/components/Switch/Switch",
  "get-env",
  "react-query/build/modern/(?:infiniteQueryOptions|useInfiniteQuery)",
);
/** Small parts of the lists that only admins see. */
const ADMIN = modules(
  "src/components/(?:DeleteButton|DropFile|EnabledSwitch|FormInspector|JsonView)",
  "src/components/(?:OneTimeSecret|PartNotLoaded|Suspended)",
  "src/screens/(?:account/SessionList|deliveries/consumers|deliveries/deliveries|settings/units|users/users|webhooks/Warnings)",
);
/** What the pages of objects share, and what the forms of records share. */
const OBJECT_FORMS = modules(
  "src/screens/objects/change/(?:Change\\.module|CopySteps|Effect)",
  "src/screens/objects/field/[\\w.]+",
  "src/screens/objects/model/(?:apply|draft|fieldProblems|fieldTypes|history|names|plan|refusalAt|store|tryValue)",
  "src/screens/objects/object/(?:FieldsTab|Objects\\.module|useObjectDraft)",
);
const RECORD_FORMS = modules(
  "src/screens/record/(?:RecordForm|draft|record\\.module|useCreating)",
  "src/screens/record/fields/[\\w.]+",
  "src/screens/records/editors/readDraft",
);

export default defineConfig({
  base: "/admin/",
  plugins: [react(), colorScheme(), licences()],
  resolve: {
    alias: {
      "@": here("src"),
      // rjsf names its usual validator in a helper for tests. That one compiles schemas, which the policy forbids.
      "@rjsf/validator-ajv8": here("src/components/schema-form/validator.ts"),
      // Descriptions of a block's manifest are text, never markup.
      "markdown-to-jsx/react": here("src/components/schema-form/plain-text.tsx"),
    },
  },
  server: { host: "127.0.0.1", proxy: { "/api": proxied, "/healthz": proxied, "/readyz": proxied } },
  html: { cspNonce: "{nonce}" },
  build: {
    target: "es2023",
    outDir: "dist",
    assetsDir: "assets",
    manifest: true,
    // Data URLs in style sheets would need another source in the policy.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    // Left alone, Rolldown makes a file for each set of screens that share code: 150 files, half of them below 1 KiB, each a request.
    // So the groups below are one file each. A group also has what its modules import, except what a group of a higher priority has.
    // Not so the two last ones: their forms need selects and tables, which other screens load without the forms.
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            { name: "base", tags: ["$initial"], priority: 5 },
            { name: "icons", test: /@tabler/, includeDependenciesRecursively: false, priority: 4 },
            { name: "common", test: COMMON, minShareCount: 2, priority: 3 },
            { name: "gate", test: GATE, minShareCount: 2, priority: 2 },
            { name: "actors", test: ACTORS, minShareCount: 2, priority: 2 },
            { name: "parts", test: PARTS, minShareCount: 2, priority: 2 },
            { name: "admin", test: ADMIN, minShareCount: 2, priority: 1 },
            { name: "object-forms", test: OBJECT_FORMS, minShareCount: 2, includeDependenciesRecursively: false },
            { name: "record-forms", test: RECORD_FORMS, minShareCount: 2, includeDependenciesRecursively: false },
          ],
        },
      },
    },
  },
});
