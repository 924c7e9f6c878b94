import { Button, Group } from "@mantine/core";
import { IconUpload } from "@tabler/icons-react";
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { linkOptions, useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { address, api, dataOf, ok } from "../../api/client";
import { useCan } from "../../api/session";
import { CopyText } from "../../components/Copy";
import { CopyMenu, asCurl, quoted } from "../../components/CopyAs";
import { DropFile } from "../../components/DropFile";
import { ErrorNotice } from "../../components/ErrorState";
import { OneTimeSecret } from "../../components/OneTimeSecret";
import { Page } from "../../components/Page";
import { Late } from "../../components/Skeleton";
import { StatusBadge } from "../../components/StatusBadge";
import { Value } from "../../components/Value";
import { told } from "../../components/toast";
import { bytes } from "../settings/units";
import { Warnings } from "../webhooks/Warnings";
import { adds } from "./BlocksScreen";
import type { BlockAction, Inspection, InstallReport } from "../../api/types";
import { asksForMore, neededFor } from "./blocks";
import { Consent } from "./Consent";
import classes from "./Blocks.module.css";

const headers = { "content-type": "application/wasm" };

/** Whether the report has a warning or a secret, which is shown only once. A webhook that existed before keeps its secret. */
const isWorthReading = ({ webhooks, warnings }: InstallReport) => warnings !== undefined || webhooks.some(({ secret }) => secret !== undefined);

/** Installs a block from a file. First the server inspects the file and the person consents. */
export function InstallBlockScreen() {
  const { upgrade } = useSearch({ from: "/blocks/install" });
  const navigate = useNavigate({ from: "/blocks/install" });
  const cache = useQueryClient();
  const canCreate = useCan("blocks", "create");
  const [file, setFile] = useState<File>();
  const inspect = useMutation({
    mutationFn: (chosen: File) => dataOf(api.POST("/api/v1/blocks/inspect", { body: chosen, headers })),
  });
  const found = inspect.data;
  const isUpgrade = found?.installed !== undefined && found.installed !== null;
  // With `consent`, the install fails if it is of something else than this page shows.
  const consent = found === undefined || found.consent === null ? {} : { consent: found.consent };
  const query = isUpgrade ? { upgrade: true, allowNewPermissions: asksForMore(found.newPermissions), ...consent } : consent;
  const install = useMutation({
    mutationFn: async () => {
      const { data, report } = await ok(api.POST("/api/v1/blocks", { body: file!, headers, params: { query } }));
      // The response lacks the block only after a dry run.
      return { data: data!, report };
    },
    onSuccess: async ({ data, report }) => {
      await cache.invalidateQueries({ queryKey: ["blocks"] });
      if (isWorthReading(report)) return;
      told(`${data.name} ${data.version} is installed.`);
      await navigate({ to: "/blocks/$block", params: { block: data.name } });
    },
    // The cache must not keep secrets of webhooks.
    gcTime: 0,
  });
  const take = (chosen: File | undefined) => {
    if (chosen === undefined) return;
    setFile(chosen);
    install.reset();
    inspect.mutate(chosen);
  };
  const copied: [string, () => string][] = file === undefined ? [] : [
    ["curl", () => `${asCurl({ method: "POST", path: address("/api/v1/blocks", query) })} \\\n  -H 'content-type: application/wasm' \\\n  --data-binary @${quoted(file.name)}`],
    ["Command line", () => `blockbase block ${isUpgrade ? "upgrade" : "install"} ${quoted(file.name)}`],
  ];
  const wrongName = upgrade !== undefined && found !== undefined && found.manifest.name !== upgrade;
  return (
    <Page title={upgrade === undefined ? "Install a block" : `Upgrade ${upgrade}`} crumbs={[{ label: "Blocks", link: linkOptions({ to: "/blocks" }) }]} actions={found === undefined || wrongName || install.data !== undefined ? undefined : <CopyMenu texts={copied} />} padded narrow>
      <div className={classes.install}>
        {!canCreate && <p>You need <code className="mono">create</code> on <code className="mono">blocks</code> to install one.</p>}
        {canCreate && install.data === undefined && (
          <DropFile label="Packed block" accept=".wasm,application/wasm" action={file === undefined ? "Choose file" : "Choose another file"} isBusy={inspect.isPending} small={file !== undefined} onFile={take}>
            <IconUpload size={20} aria-hidden="true" />
            <span>{file === undefined ? "Drop a packed block here (.wasm)" : file.name}</span>
          </DropFile>
        )}
        {inspect.isPending && (
          <Late>
            <p role="status">The server checks and compiles {file?.name}. That takes a few seconds.</p>
          </Late>
        )}
        {inspect.error !== null && <ErrorNotice error={inspect.error} title="This file cannot be installed" />}
        {install.data !== undefined && isWorthReading(install.data.report) && (
          <>
            <h2>{install.data.data.name} is installed</h2>
            <Warnings warnings={install.data.report.warnings} />
            {install.data.report.webhooks.map(({ id, name, secret }) => secret !== undefined && <OneTimeSecret key={id} label={`Signing secret of the webhook ${name}`} secret={secret} />)}
            <Button onClick={() => void navigate({ to: "/blocks/$block", params: { block: install.data.data.name } })}>Done</Button>
          </>
        )}
        {found !== undefined && install.data === undefined && (
          <>
            <header className={classes.found}>
              <h2 dir="auto">
                {found.manifest.name} {found.manifest.version}
              </h2>
              {isUpgrade && <StatusBadge tone="info">upgrade from {found.installed?.version}</StatusBadge>}
              <p dir="auto">{found.manifest.description}</p>
              <p className="dim">
                {bytes(found.sizeBytes)} · SHA-256 <CopyText text={found.sha256} shown={`${found.sha256.slice(0, 12)}…`} label="Copy the hash" />
                {found.manifest.license !== undefined && ` · ${found.manifest.license}`} · adds {adds(found.manifest)}
              </p>
            </header>
            {wrongName && <ErrorNotice error={new Error(`This file is the block ${found.manifest.name}, not ${upgrade}. Choose the next version of ${upgrade}.`)} title="Another block" />}
            {found.problems.map(({ error, message }) => (
              <ErrorNotice key={error + message} error={new Error(message)} title="It would be refused now" />
            ))}
            <section>
              <h3>What it may do</h3>
              <Consent permissions={found.permissions} instances={found.instances} added={isUpgrade ? found.newPermissions : undefined} />
            </section>
            {isUpgrade && <Differences differences={found.differences} />}
            <Declares manifest={found.manifest} />
            {install.error !== null && <ErrorNotice error={install.error} title="The block was not installed" />}
            <Group gap="sm">
              <Button loading={install.isPending} disabled={found.problems.length > 0 || wrongName} onClick={() => install.mutate()}>
                {isUpgrade ? (asksForMore(found.newPermissions) ? "Agree and upgrade" : "Upgrade block") : "Agree and install"}
              </Button>
              <Button variant="default" onClick={() => void navigate({ to: "/blocks" })}>
                Cancel
              </Button>
            </Group>
          </>
        )}
      </div>
    </Page>
  );
}

function Differences({ differences }: { differences: Inspection["differences"] }) {
  if (differences.length === 0) return <p className="dim">It declares the same as the version that is installed.</p>;
  return (
    <section>
      <h3>What changes</h3>
      <ul className={classes.differences}>
        {differences.map(({ part, name, change, before, after, needsConsent }) => (
          <li key={`${part} ${name} ${change}`}>
            <StatusBadge tone={change === "added" ? "ok" : change === "removed" ? "bad" : "info"} plain>
              {change}
            </StatusBadge>
            <span>
              {part}
              {name !== null && (
                <>
                  {" "}
                  <code className="mono">{name}</code>
                </>
              )}
              {change === "changed" && (typeof before !== "object" || typeof after !== "object") && (
                <>
                  : <Value value={before} /> → <Value value={after} />
                </>
              )}
            </span>
            {needsConsent && <StatusBadge tone="warn">asks for more</StatusBadge>}
          </li>
        ))}
      </ul>
    </section>
  );
}

function Declares({ manifest: { actions, hooks, subscriptions, webhooks } }: { manifest: Inspection["manifest"] }) {
  return (
    <>
      <Declared title="Actions" all={actions.map((action) => [action.name, action.name, [action.description, callersOf(action)].filter(Boolean).join(" · ")])} />
      <Declared title="Events that it gets" all={subscriptions.map(({ event, consumer, handler }) => [consumer, event, `by its handler ${handler}`])} />
      <Declared title="Hooks, open to everybody who knows the address" all={hooks.map(({ name, description }) => [name, name, description])} />
      <Declared title="Webhooks that it sets up" all={webhooks.map(({ name, url, topics }) => [name, name, `${topics.join(", ")} to ${url}`])} />
    </>
  );
}

/** Who may call an action, in the words of the command line. */
function callersOf(action: BlockAction): string {
  const { action: right, resource } = neededFor(action);
  return `for callers with ${right} on ${resource}`;
}

/** A list of declared items. Each has a key, a name and a description. */
function Declared({ title, all }: { title: string; all: (readonly [key: string, name: string, about: string | undefined])[] }) {
  if (all.length === 0) return null;
  return (
    <section>
      <h3>{title}</h3>
      <dl className={classes.declared}>
        {all.map(([key, name, about]) => (
          <div key={key}>
            <dt className="mono">{name}</dt>
            <dd dir="auto">{about}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
