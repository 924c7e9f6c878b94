import { Page } from "../../components/Page";
import { SkeletonRows } from "../../components/Skeleton";

export function TasksScreen() {
  return (
    <Page title="Tasks">
      <SkeletonRows />
    </Page>
  );
}
