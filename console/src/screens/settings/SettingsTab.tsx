import { queryOptions, useQuery } from "@tanstack/react-query";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { api, dataOf } from "../../api/client";
import type { Setting } from "../../api/types";
import { ErrorState } from "../../components/ErrorState";
import { Find } from "../../components/Find";
import { SkeletonRows } from "../../components/Skeleton";
import { StatusBadge } from "../../components/StatusBadge";
import { Ticked } from "../../components/Ticked";
import classes from "./Settings.module.css";

const settingsQuery = queryOptions({
  queryKey: ["settings"],
  queryFn: ({ signal }) => dataOf(api.GET("/api/v1/settings", { signal })),
  // The server reads its settings only once, when it starts.
  staleTime: 60_000,
});

const SOURCES: Record<Setting["source"], string> = {
  default: "default",
  environment: "from the environment",
  file: "from a file",
};

/** Every setting with its value and its source. For secrets, it only shows whether they are set. */
export function SettingsTab() {
  const { q = "" } = useSearch({ from: "/settings" });
  const navigate = useNavigate({ from: "/settings" });
  const { data, error, refetch } = useQuery(settingsQuery);
  if (error !== null && data === undefined) return <ErrorState error={error} title="The settings could not be loaded" onRetry={() => void refetch()} />;
  const wanted = q.trim().toLowerCase();
  const shown = data?.filter(({ name, description, value }) => [name, description, value ?? ""].some((text) => text.toLowerCase().includes(wanted)));
  return (
    <div className={classes.configuration}>
      <p className="dim">
        The server reads these from environment variables when it starts. To change one, set the variable and start the server again.
      </p>
      <Find className={classes.search} label="Find a setting" value={q} onFind={(text) => void navigate({ search: (before) => ({ ...before, q: text }), replace: true })} />
      {shown === undefined ? (
        <SkeletonRows rows={14} columns={3} />
      ) : shown.length === 0 ? (
        <p className="dim">No setting matches “{q}”.</p>
      ) : (
        <table className={classes.table}>
          <thead>
            <tr>
              <th scope="col">Setting</th>
              <th scope="col">Value</th>
              <th scope="col">Source</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((setting) => (
              <tr key={setting.name}>
                <th scope="row">
                  <code className="mono">{setting.name}</code>
                  <p>
                    <Ticked text={setting.description} />
                  </p>
                </th>
                <td>
                  <SettingValue {...setting} />
                </td>
                <td data-default={setting.source === "default" || undefined}>{SOURCES[setting.source]}</td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
    </div>
  );
}

function SettingValue({ value, secret, isSet }: Setting) {
  if (secret) return isSet ? <StatusBadge tone="ok" plain>set, hidden</StatusBadge> : <StatusBadge tone="off" plain>not set</StatusBadge>;
  if (value === null) return <span className="dim">not set</span>;
  if (value === "") return <span className="dim mono">""</span>;
  return (
    <code className={`mono ${classes.value}`} dir="auto">
      {value}
    </code>
  );
}
