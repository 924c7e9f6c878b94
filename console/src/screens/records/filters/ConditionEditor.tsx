/** The editor of one condition, with a button that opens the builder for several conditions. */
import { Button, Divider, Group, Stack } from "@mantine/core";
import { IconBinaryTree } from "@tabler/icons-react";
import { useState } from "react";
import type { RecordShape } from "../columns";
import { fits, isComplete } from "./sendable";
import { TestFields } from "./TestFields";
import { type Part, type Related, type ShapeOf, type Test, TOO_LONG, emptyTest, filterOf, fitsAddress, groupOf } from "./tree";
import { submits } from "../../../components/submits";
import classes from "./Editors.module.css";

export interface ConditionEditorProps {
  shape: RecordShape;
  of: ShapeOf;
  test: Test | null;
  action: string;
  onApply: (test: Test) => void;
  onRemove?: () => void;
  /** Opens the builder with this condition in its place. Left out if the bar takes only plain conditions. */
  onBuild?: ((part: Part) => void) | undefined;
  /** Returns all parts of the filter, with the given part in the place of the edited one. */
  among: (part: Part) => Part[];
  /** The search text beside the filter. The address has room for both. */
  search: string;
  onClose: () => void;
}

export function ConditionEditor({ shape, of, test, action, onApply, onRemove, onBuild, among, search, onClose }: ConditionEditorProps) {
  const [draft, setDraft] = useState<Test>(test ?? emptyTest());
  const isWhole = isComplete(draft, shape, of);
  const isTooLong = isWhole && !fitsAddress(filterOf(among(draft), shape, of), search);
  const apply = () => {
    if (isWhole && !isTooLong) onApply(draft);
  };
  const related = (path: string[]): Related => ({ kind: "related", path, quantifier: "some", inner: groupOf([emptyTest()]) });
  return (
    <Stack
      gap="sm"
      className={classes.quick!}
      component="form"
      onKeyDown={(event) => {
        // If a list inside the popover is open, Escape must not close the popover.
        if (event.key === "Escape" && (event.target as HTMLElement).dataset.mantineStopPropagation !== "true") onClose();
      }}
      onSubmit={submits(() => apply())}
    >
      <TestFields
        shape={shape}
        of={of}
        test={draft}
        onChange={setDraft}
        onSubmit={apply}
        onRelated={onBuild === undefined ? undefined : (path) => onBuild(related(path))}
        mayTake={(part) => onBuild !== undefined && fits(among(part), shape, of)}
        autoFocus={test === null}
        withinPortal={false}
      />
      {isTooLong && (
        <div className={classes.missing} role="alert">
          {TOO_LONG}
        </div>
      )}
      <Group justify="space-between" gap="sm">
        {onRemove === undefined ? (
          <span />
        ) : (
          <Button variant="subtle" color="gray" onClick={onRemove}>
            Remove
          </Button>
        )}
        <Button type="submit" disabled={!isWhole || isTooLong}>
          {action}
        </Button>
      </Group>
      {onBuild !== undefined && (
        <>
          <Divider />
          <Button variant="subtle" color="gray" justify="flex-start" leftSection={<IconBinaryTree size={14} />} onClick={() => onBuild(draft)}>
            Build with and, or, not
          </Button>
        </>
      )}
    </Stack>
  );
}
