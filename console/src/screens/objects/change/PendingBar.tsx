import { Button } from "@mantine/core";
import { IconAlertTriangle } from "@tabler/icons-react";
import { later, useEver } from "../../../components/later";
import type { Step } from "../model/draft";
import { quantity } from "../../../api/numbers";
import classes from "./Change.module.css";

const Review = later(() => import("./Review").then((loaded) => loaded.Review));

/** The bar below the object while it has pending changes. */
export function PendingBar({ object, steps, isValid, schemaVersion, onDiscard, opened, onOpen }: { object: string; steps: Step[]; isValid: boolean; schemaVersion: number | undefined; onDiscard: () => void; opened: boolean; onOpen: (opened: boolean) => void }) {
  const wasOpened = useEver(opened);
  return (
    <>
      {steps.length > 0 && (
        <section className={classes.bar} aria-label="Pending changes">
          <div className={classes.barText}>
            <IconAlertTriangle size={16} color="var(--bb-amber)" aria-hidden="true" />
            <strong role="status">{quantity(steps.length, "pending change")}</strong>
            <span className={classes.barFirst}>{isValid ? steps[0]!.sentence : "Something in them is not right yet; it is marked where it stands."}</span>
          </div>
          <Button variant="default" onClick={onDiscard}>
            Discard
          </Button>
          <Button onClick={() => onOpen(true)} disabled={!isValid}>
            Review and apply
          </Button>
        </section>
      )}
      {wasOpened && <Review object={object} steps={steps} schemaVersion={schemaVersion} opened={opened} onClose={() => onOpen(false)} />}
    </>
  );
}
