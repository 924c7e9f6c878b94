import { Button } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { EmptyState } from "../../components/EmptyState";
import { Page } from "../../components/Page";

export function NotFound() {
  return (
    <Page title="Nothing here">
      <EmptyState title="There is no page at this address" action={<Button component={Link} to="/">Go to Home</Button>}>
        The link may be old, or a letter is wrong. Ctrl K finds objects, records and screens.
      </EmptyState>
    </Page>
  );
}
