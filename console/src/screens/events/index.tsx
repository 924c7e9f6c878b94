import { Page } from "../../components/Page";
import { SkeletonRows } from "../../components/Skeleton";

export function EventsScreen() {
  return (
    <Page title="Events">
      <SkeletonRows />
    </Page>
  );
}
