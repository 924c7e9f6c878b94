import { Modal } from "@mantine/core";
import { useMediaQuery } from "@mantine/hooks";
import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useRef, useState } from "react";
import { type RecordShape, useRecordShape, useShapes } from "../../../api/record-shape";
import { allows, usePermissions } from "../../../api/session";
import { confirm } from "../../../components/confirm-store";
import { ErrorNotice } from "../../../components/ErrorState";
import { SkeletonLines } from "../../../components/Skeleton";
import { ChooseFile } from "./ChooseFile";
import { CheckStep } from "./CheckStep";
import { MapStep } from "./MapStep";
import { RunStep } from "./RunStep";
import { DEFAULT_SETTINGS } from "./convert";
import type { Plan, Sight } from "./import.worker";
import { Importer, type ImportState } from "./importer";
import { guessLookups, guessMapping } from "./mapping";
import { Reader } from "./reader";
import type { SourceOptions } from "./formats";
import { Ticked } from "../../../components/Ticked";
import classes from "./transfer.module.css";

type Step =
  | { step: "file"; error?: string; isReading?: boolean }
  | { step: "map"; file: File; sight: Sight; plan: Plan; error?: string }
  | { step: "check"; file: File; sight: Sight; plan: Plan }
  | { step: "run"; file: File; sight: Sight; plan: Plan; importer: Importer };

const STEPS = [
  ["file", "File"],
  ["map", "Columns"],
  ["check", "Check"],
  ["run", "Import"],
] as const;

/** Imports the rows of a file in steps: choose the file, match the columns, check without writing, import, and show the refused rows. */
export default function ImportDialog({ object, onClose }: { object: string; onClose: () => void }) {
  const shape = useRecordShape(object, { isNew: true });
  const isNarrow = useMediaQuery("(max-width: 48em)") ?? false;
  const [isBusy, setBusy] = useState(false);
  const close = async () => {
    if (isBusy && !(await confirm({ title: "Stop the import?", children: "Rows that are imported stay. The others are not sent.", action: "Stop the import" }))) return;
    onClose();
  };
  return (
    <Modal opened onClose={() => void close()} title={`Import into ${shape.data?.label ?? object}`} size={960} fullScreen={isNarrow} zIndex={220} closeOnClickOutside={false}>
      {shape.data ? (
        <Steps shape={shape.data} onBusy={setBusy} onClose={() => void close()} />
      ) : shape.error !== null && shape.error !== undefined ? (
        <ErrorNotice error={shape.error} onRetry={shape.refetch} />
      ) : shape.data === null ? (
        <p><Ticked text={`There is no object \`${object}\` that you may use.`} /></p>
      ) : (
        <SkeletonLines lines={5} />
      )}
    </Modal>
  );
}

function Steps({ shape, onBusy, onClose }: { shape: RecordShape; onBusy: (isBusy: boolean) => void; onClose: () => void }) {
  const [now, setNow] = useState<Step>({ step: "file" });
  const [state, setState] = useState<ImportState | null>(null);
  const [reader] = useState(() => new Reader());
  const running = useRef<Importer | null>(null);
  const cache = useQueryClient();
  const { of } = useShapes();
  const permissions = usePermissions();
  // If this person may not read the records of an object, the import cannot find them by a unique field.
  const named = (object: string) => (allows(permissions, object, "read") ? of?.(object) : undefined);
  useEffect(
    () => () => {
      running.current?.cancel();
      reader.close();
    },
    [reader],
  );

  const look = async (file: File, options?: SourceOptions, kept?: Plan) => {
    if (options === undefined) setNow({ step: "file", isReading: true });
    try {
      const sight = await reader.look(file, options);
      if (sight.names.length === 0) throw new Error("There are no rows in this file.");
      const mapping = guessMapping(sight.names, shape, kept?.target?.includes("id") ?? false, named);
      const plan: Plan = {
        options: sight.options,
        settings: kept?.settings ?? DEFAULT_SETTINGS,
        columns: shape.columns,
        target: kept?.target ?? null,
        lookups: guessLookups(mapping, shape, named),
        mapping,
      };
      setNow({ step: "map", file, sight, plan });
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      if (options === undefined) setNow({ step: "file", error: message });
      else setNow((before) => (before.step === "map" ? { ...before, error: message } : before));
    }
  };

  const start = (file: File, sight: Sight, plan: Plan) => {
    const importer = new Importer(shape.object, file, plan, reader, (next) => {
      setState(next);
      if (next.phase === "done" || next.phase === "canceled" || next.phase === "failed") {
        onBusy(false);
        void cache.invalidateQueries({ queryKey: ["data", shape.object] });
      }
    });
    running.current = importer;
    setState(importer.state);
    setNow({ step: "run", file, sight, plan, importer });
    onBusy(true);
    void importer.run();
  };

  const index = STEPS.findIndex(([step]) => step === now.step);
  return (
    <div className={classes.dialog}>
      <ol className={classes.steps} aria-label="Steps">
        {STEPS.map(([step, label], each) => (
          <li key={step} data-now={each === index || undefined} data-past={each < index || undefined} aria-current={each === index ? "step" : undefined}>
            {each + 1} {label}
          </li>
        ))}
      </ol>
      {now.step === "file" && <ChooseFile shape={shape} error={now.error} isReading={now.isReading === true} onFile={(file) => void look(file)} />}
      {now.step === "map" && (
        <MapStep
          shape={shape}
          file={now.file}
          sight={now.sight}
          plan={now.plan}
          error={now.error}
          onPlan={(plan) => setNow({ ...now, plan })}
          onOptions={(options) => void look(now.file, options, now.plan)}
          onBack={() => setNow({ step: "file" })}
          onNext={() => setNow({ step: "check", file: now.file, sight: now.sight, plan: now.plan })}
        />
      )}
      {now.step === "check" && (
        <CheckStep
          file={now.file}
          plan={now.plan}
          check={reader.check}
          onBack={() => setNow({ step: "map", file: now.file, sight: now.sight, plan: now.plan })}
          onStart={() => start(now.file, now.sight, now.plan)}
        />
      )}
      {now.step === "run" && state !== null && <RunStep shape={shape} file={now.file} names={now.sight.names} importer={now.importer} state={state} onClose={onClose} onAgain={() => setNow({ step: "file" })} />}
    </div>
  );
}
