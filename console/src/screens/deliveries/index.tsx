import { Page } from "../../components/Page";
import { SkeletonRows } from "../../components/Skeleton";

export function DeliveriesScreen() {
  return (
    <Page title="Deliveries">
      <SkeletonRows />
    </Page>
  );
}
