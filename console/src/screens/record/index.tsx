import { Page } from "../../components/Page";
import { SkeletonRows } from "../../components/Skeleton";

export function RecordScreen() {
  return (
    <Page title="Record">
      <SkeletonRows />
    </Page>
  );
}

export function NewRecordScreen() {
  return (
    <Page title="New record">
      <SkeletonRows />
    </Page>
  );
}
