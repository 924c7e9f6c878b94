import { Button } from "@mantine/core";
import { IconCheck, IconCopy } from "@tabler/icons-react";
import { useCopy } from "../../../components/Copy";
import { asCurl, asJavaScript } from "../../../components/CopyAs";
import { Menu } from "../../../components/floating";
import type { Step } from "../model/draft";

/** Copies the pending changes as requests in their order. The schema API only exists in REST. */
export function CopySteps({ steps }: { steps: Pick<Step, "request" | "sentence">[] }) {
  const [copied, copy] = useCopy();
  const curl = () => steps.map(({ request, sentence }) => `# ${sentence.replaceAll(/\s+/g, " ")}\n${asCurl(request)}`).join("\n\n");
  const javascript = () => steps.map(({ request, sentence }) => `// ${sentence.replaceAll(/\s+/g, " ")}\n{\n  ${asJavaScript(request).replaceAll("\n", "\n  ")}\n}`).join("\n\n");
  return (
    <Menu>
      <Menu.Target>
        <Button variant="default" leftSection={copied ? <IconCheck size={14} /> : <IconCopy size={14} />}>
          {copied ? "Copied" : "Copy as"}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        <Menu.Item onClick={() => void copy(curl())}>curl</Menu.Item>
        <Menu.Item onClick={() => void copy(javascript())}>JavaScript</Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
