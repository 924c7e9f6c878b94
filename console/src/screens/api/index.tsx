import { Page } from "../../components/Page";
import { SkeletonRows } from "../../components/Skeleton";

export function ApiScreen() {
  return (
    <Page title="API">
      <SkeletonRows />
    </Page>
  );
}
