import { SegmentedControl } from "@mantine/core";
import { useState } from "react";
import { CodeBlock } from "../../components/CodeBlock";
import { SAMPLES } from "./samples";
import own from "./Webhooks.module.css";

/** Code for receivers. Each example checks the signature in constant time and refuses old requests. */
export function Verify() {
  const [language, setLanguage] = useState<keyof typeof SAMPLES>("JavaScript");
  return (
    <div className={own.verify}>
      <p>
        Each request carries <code className="mono">x-svc-signature: t=&lt;unix seconds&gt;,v1=&lt;hex&gt;</code>. For 24 hours after the secret was rotated there are two <code className="mono">v1</code>, of the new and of the old secret: accept the request if any of them holds. The hex is the HMAC-SHA256 of <code className="mono">t.body</code>, with the webhook’s whole secret as the key. Compare in constant time, refuse a <code className="mono">t</code> that is
        older than five minutes, and skip an event whose id you have seen.
      </p>
      <SegmentedControl aria-label="Language" data={Object.keys(SAMPLES)} value={language} onChange={(value) => setLanguage(value as keyof typeof SAMPLES)} />
      <CodeBlock code={SAMPLES[language]} label={language} />
    </div>
  );
}
