import { Notifications as Place } from "@mantine/notifications";

export default function Notifications() {
  return <Place position="bottom-right" limit={4} containerWidth={380} transitionDuration={120} />;
}
