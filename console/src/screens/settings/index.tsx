import { Page } from "../../components/Page";
import { SkeletonRows } from "../../components/Skeleton";

export function SettingsScreen() {
  return (
    <Page title="Settings">
      <SkeletonRows />
    </Page>
  );
}
