import { Button } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { asCurl } from "../../components/CopyAs";
import { EmptyState } from "../../components/EmptyState";
import { USERS } from "../../api/users-object";
import type { JsonValue } from "../../api/json";
import type { RecordColumn, RecordShape } from "./columns";

/** A suitable value of a column for the example request. */
function example(column: RecordColumn): JsonValue {
  if (column.options !== undefined) return column.type === "multi_enum" ? [column.options[0] ?? ""] : (column.options[0] ?? "");
  const known: Record<string, JsonValue> = { boolean: true, integer: 1, big_integer: 1, decimal: 1.5, currency: 9.99, percentage: 12.5, float: 1.5, rating: 4, date: "2026-01-31", time: "12:00", datetime: "2026-01-31T12:00:00Z", json: {}, email: "ada@example.com", url: "https://example.com", slug: "first", uuid: "01a2025c-0000-7000-8000-000000000000" };
  return known[column.type] ?? "First";
}

export function EmptyRecords({ shape, isFiltered, mayCreate, onClear }: { shape: RecordShape; isFiltered: boolean; mayCreate: boolean; onClear: () => void }) {
  if (isFiltered)
    return (
      <EmptyState title="No record matches" action={<Button onClick={onClear}>Clear search and filter</Button>}>
        Take away a condition, or search for something shorter.
      </EmptyState>
    );
  if (shape.name === USERS) return <EmptyState title="There is no user to see">Your grants reach the account of nobody.</EmptyState>;
  const own = shape.columns.filter(({ isSystem }) => !isSystem);
  const shown = own.filter(({ required }) => required);
  const body = Object.fromEntries((shown.length > 0 ? shown : own.slice(0, 2)).map((column) => [column.id, example(column)]));
  return (
    <EmptyState
      title={`${shape.label} has no records yet`}
      docs={`POST /api/v1/data/${shape.name}`}
      {...(mayCreate
        ? {
            action: (
              <Button component={Link} to="/data/$object/new" params={{ object: shape.name } as never} search={{} as never}>
                New record
              </Button>
            ),
          }
        : {})}
      curl={asCurl({ method: "POST", path: `/api/v1/data/${shape.name}`, body })}
    >
      Records appear here as soon as they are made, by you or by a program.
    </EmptyState>
  );
}
