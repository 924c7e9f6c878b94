import { Page } from "../../components/Page";
import { SkeletonRows } from "../../components/Skeleton";

export function WebhooksScreen() {
  return (
    <Page title="Webhooks">
      <SkeletonRows />
    </Page>
  );
}
