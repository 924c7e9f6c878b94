import { Page } from "../../components/Page";
import { SkeletonRows } from "../../components/Skeleton";

export function HomeScreen() {
  return (
    <Page title="Home">
      <SkeletonRows />
    </Page>
  );
}
