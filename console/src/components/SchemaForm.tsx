import { lazy, Suspense } from "react";
import type { Issue } from "../api/errors";
import type { JsonValue } from "../api/json";
import { SkeletonLines } from "./Skeleton";

export interface SchemaFormProps {
  /** A JSON Schema 2020-12 that describes the value. */
  schema: object;
  value: JsonValue | undefined;
  onChange: (value: JsonValue | undefined) => void;
  onSubmit: (value: JsonValue | undefined) => void;
  /** The issues that the server reported for the last attempt. They appear at the fields. */
  issues?: Issue[];
  /** The label of the button, a verb. */
  submit: string;
  /** Fills in the schema's defaults, so that the form sends what it shows. */
  withDefaults?: boolean;
  busy?: boolean;
  disabled?: boolean;
}

const Form = lazy(() => import("./schema-form/Form"));

/**
 * A form made from a JSON Schema (action inputs, block configuration). The form and the server both check the value. The code is loaded
 * when the first form is shown.
 */
export function SchemaForm(props: SchemaFormProps) {
  return (
    <Suspense fallback={<SkeletonLines lines={4} />}>
      <Form {...props} />
    </Suspense>
  );
}
