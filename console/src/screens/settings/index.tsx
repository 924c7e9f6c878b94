import { linkOptions, useSearch } from "@tanstack/react-router";
import { CopyAs } from "../../components/CopyAs";
import { Page } from "../../components/Page";
import { SettingsTab } from "./SettingsTab";
import { StatusTab } from "./StatusTab";

/** The state of the service and its settings. Nothing can be changed here. */
export function SettingsScreen() {
  const { tab = "status" } = useSearch({ from: "/settings" });
  return (
    <Page
      title="Settings"
      padded
      tabs={[
        { label: "Status", link: linkOptions({ to: "/settings", search: {} }), active: tab === "status" },
        { label: "Configuration", link: linkOptions({ to: "/settings", search: { tab: "settings" } }), active: tab === "settings" },
      ]}
      actions={<CopyAs request={{ method: "GET", path: tab === "status" ? "/api/v1/status" : "/api/v1/settings" }} />}
    >
      {tab === "status" ? <StatusTab /> : <SettingsTab />}
    </Page>
  );
}
