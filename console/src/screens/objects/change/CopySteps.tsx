import { CopyMenu, asCurl, asJavaScript } from "../../../components/CopyAs";
import type { Step } from "../model/draft";

/** Copies the pending changes as requests in their order. The schema API only exists in REST. */
export function CopySteps({ steps }: { steps: Pick<Step, "request" | "sentence">[] }) {
  const curl = () => steps.map(({ request, sentence }) => `# ${sentence.replaceAll(/\s+/g, " ")}\n${asCurl(request)}`).join("\n\n");
  const javascript = () => steps.map(({ request, sentence }) => `// ${sentence.replaceAll(/\s+/g, " ")}\n{\n  ${asJavaScript(request).replaceAll("\n", "\n  ")}\n}`).join("\n\n");
  return (
    <CopyMenu
      texts={[
        ["curl", curl],
        ["JavaScript", javascript],
      ]}
    />
  );
}
