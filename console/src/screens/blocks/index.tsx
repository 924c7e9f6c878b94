import { Page } from "../../components/Page";
import { SkeletonRows } from "../../components/Skeleton";

export function BlocksScreen() {
  return (
    <Page title="Blocks">
      <SkeletonRows />
    </Page>
  );
}

export function InstallBlockScreen() {
  return (
    <Page title="Install a block">
      <SkeletonRows />
    </Page>
  );
}

export function BlockScreen() {
  return (
    <Page title="Block">
      <SkeletonRows />
    </Page>
  );
}
