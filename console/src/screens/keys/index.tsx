import { Page } from "../../components/Page";
import { SkeletonRows } from "../../components/Skeleton";

export function KeysScreen() {
  return (
    <Page title="Keys">
      <SkeletonRows />
    </Page>
  );
}
