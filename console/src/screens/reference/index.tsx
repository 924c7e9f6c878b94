import { Button } from "@mantine/core";
import { IconExternalLink } from "@tabler/icons-react";
import { linkOptions, useSearch } from "@tanstack/react-router";
import { CopyAs } from "../../components/CopyAs";
import { Page } from "../../components/Page";
import { Mcp } from "./Mcp";
import { Reference } from "./Reference";
import { Snippets } from "./Snippets";

/** Shows how programs and agents use the API: the OpenAPI document, a form to try it, and examples to paste. */
export function ApiScreen() {
  const { tab = "reference" } = useSearch({ from: "/api" });
  return (
    <Page
      title="API"
      padded={tab !== "reference"}
      tabs={[
        { label: "Reference", link: linkOptions({ to: "/api", search: {} }), active: tab === "reference" || tab === "graphql" },
        { label: "Snippets", link: linkOptions({ to: "/api", search: { tab: "snippets" } }), active: tab === "snippets" },
        { label: "MCP", link: linkOptions({ to: "/api", search: { tab: "mcp" } }), active: tab === "mcp" },
      ]}
      actions={
        <>
          <CopyAs request={{ method: "GET", path: "/api/v1/openapi.json" }} />
          <Button variant="default" component="a" href="/api/v1/graphql" target="_blank" rel="noreferrer" rightSection={<IconExternalLink size={14} />}>
            GraphiQL
          </Button>
        </>
      }
    >
      {tab === "mcp" ? <Mcp /> : tab === "snippets" ? <Snippets /> : <Reference />}
    </Page>
  );
}
