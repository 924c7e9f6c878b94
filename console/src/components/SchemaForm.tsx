import { lazy, Suspense } from "react";
import type { Issue } from "../api/errors";
import type { JsonValue } from "../api/json";
import { SkeletonLines } from "./Skeleton";

export interface SchemaFormProps {
  /** JSON Schema 2020-12 of the value. */
  schema: object;
  value: JsonValue | undefined;
  onChange: (value: JsonValue | undefined) => void;
  onSubmit: (value: JsonValue | undefined) => void;
  /** What the server said of the last try; shown at the fields. */
  issues?: Issue[];
  /** The verb on the button. */
  submit: string;
  /** Fills in the schema's defaults, so that what is shown is what is sent. */
  withDefaults?: boolean;
  busy?: boolean;
  disabled?: boolean;
}

const Form = lazy(() => import("./schema-form/Form"));

/** A form from a JSON Schema (action inputs, block configuration), checked here and by the server. Loaded when it is first shown. */
export function SchemaForm(props: SchemaFormProps) {
  return (
    <Suspense fallback={<SkeletonLines lines={4} />}>
      <Form {...props} />
    </Suspense>
  );
}
