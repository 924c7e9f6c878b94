import { Page } from "../../components/Page";
import { SkeletonRows } from "../../components/Skeleton";

export function RolesScreen() {
  return (
    <Page title="Roles">
      <SkeletonRows />
    </Page>
  );
}

export function RoleScreen() {
  return (
    <Page title="Role">
      <SkeletonRows />
    </Page>
  );
}
