/** The rows of a condition or its JSON text, with a button that switches between them. */
import { Button } from "@mantine/core";
import { IconBraces } from "@tabler/icons-react";
import { CodeEditor } from "../../../components/CodeEditor";
import { Ticked } from "../../../components/Ticked";
import type { RecordShape } from "../columns";
import { GroupEditor } from "./GroupEditor";
import type { ConditionDraft } from "./useConditionDraft";
import classes from "./Editors.module.css";

export interface ConditionFieldsProps {
  draft: ConditionDraft;
  shape: RecordShape;
  /** The label of the text editor. */
  label: string;
  hint: string;
  minLines?: number;
  /** The server's message about the condition. */
  error?: string | undefined;
}

export function ConditionFields({ draft: { root, text, setText, problem, edit, tree }, shape, label, hint, minLines = 8, error }: ConditionFieldsProps) {
  return (
    <div className={classes.tree} ref={tree}>
      {text === null ? (
        <GroupEditor group={root} at={[]} shape={shape} edit={edit} />
      ) : (
        <>
          <CodeEditor label={label} value={text} onChange={setText} minLines={minLines} maxLines={20} error={problem ?? error} />
          <p className={classes.hint}>
            <Ticked text={hint} />
          </p>
        </>
      )}
    </div>
  );
}

export function JsonToggle({ draft: { text, json, edit, back, toggle }, isFixed = false }: { draft: ConditionDraft; isFixed?: boolean }) {
  return text === null ? (
    <Button ref={toggle} variant="subtle" color="gray" leftSection={<IconBraces size={14} />} onClick={edit.asJson}>
      Edit as JSON
    </Button>
  ) : (
    <Button ref={toggle} variant="subtle" color="gray" disabled={isFixed || json === undefined} onClick={back}>
      Back to the builder
    </Button>
  );
}
