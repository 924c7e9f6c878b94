import { Page } from "../../components/Page";
import { SkeletonRows } from "../../components/Skeleton";

export function UsersScreen() {
  return (
    <Page title="Users">
      <SkeletonRows />
    </Page>
  );
}
