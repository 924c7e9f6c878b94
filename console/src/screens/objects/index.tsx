import { Page } from "../../components/Page";
import { SkeletonRows } from "../../components/Skeleton";

export function ObjectsScreen() {
  return (
    <Page title="Objects">
      <SkeletonRows />
    </Page>
  );
}

export function NewObjectScreen() {
  return (
    <Page title="New object">
      <SkeletonRows />
    </Page>
  );
}

export function ObjectScreen() {
  return (
    <Page title="Object">
      <SkeletonRows />
    </Page>
  );
}
