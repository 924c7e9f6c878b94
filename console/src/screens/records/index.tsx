import { Page } from "../../components/Page";
import { SkeletonRows } from "../../components/Skeleton";

export function RecordsScreen() {
  return (
    <Page title="Records">
      <SkeletonRows />
    </Page>
  );
}
