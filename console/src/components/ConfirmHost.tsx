import { Button, Group, Modal, Text, TextInput } from "@mantine/core";
import { useEffect, useState } from "react";
import { useAsked } from "./confirm-store";
import { submits } from "./submits";

/** Shows the questions of `confirm`. It exists once, in the root. */
export default function ConfirmHost() {
  const asked = useAsked();
  // The question that stays visible while the dialog fades out.
  const [shown, setShown] = useState(asked);
  const [typed, setTyped] = useState("");
  useEffect(() => {
    if (asked === null) return;
    setShown(asked);
    setTyped("");
  }, [asked]);
  const options = asked ?? shown;
  return (
    <Modal opened={asked !== null} onClose={() => asked?.answer(false)} title={options?.title} centered size="md" zIndex={350}>
      {options !== null && (
        <form onSubmit={submits(() => asked?.answer(true))}>
          <Text component="div" size="sm">
            {options.children}
          </Text>
          {options.typed !== undefined && (
            <TextInput mt="md" label={<>Type <code className="mono">{options.typed}</code> to go on</>} value={typed} onChange={(event) => setTyped(event.currentTarget.value)} autoComplete="off" data-autofocus />
          )}
          <Group justify="flex-end" gap="sm" mt="lg">
            <Button variant="default" onClick={() => asked?.answer(false)}>
              Cancel
            </Button>
            <Button type="submit" color={options.danger === false ? "indigo" : "red"} disabled={options.typed !== undefined && typed !== options.typed} {...(options.typed === undefined ? { "data-autofocus": true } : {})}>
              {options.action}
            </Button>
          </Group>
        </form>
      )}
    </Modal>
  );
}
