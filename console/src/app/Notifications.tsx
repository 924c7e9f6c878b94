import { Notifications as Place } from "@mantine/notifications";

/** The place where toasts appear. */
export default function Notifications() {
  return <Place position="bottom-right" limit={4} containerWidth={380} transitionDuration={120} />;
}
