import { Page } from "../../components/Page";

export function AccountScreen() {
  return <Page title="Your account" padded><p /></Page>;
}
