/** The periods that a condition on groups can name. The server sends them, because a border that the browser computes may not be one. */
import { readGroups } from "../../../api/aggregates";
import type { Choices, RecordShape } from "../columns";
import { type ListView, queryText } from "../list-query";
import { periodLabel } from "./periods";
import { GROUPS_MAX, type GroupField, periodParameters } from "./request";

/** The newest periods in which the view has records. Undefined if the field has no period. */
export function periodChoices({ key, period, clock }: GroupField, view: ListView, shape: RecordShape, zone: string | undefined): Choices | undefined {
  if (period === undefined) return undefined;
  const query = `${queryText(periodParameters(key, view, shape, zone))}&pageSize=${GROUPS_MAX}&count=none`;
  return {
    key: ["data", shape.name, "periods", query],
    load: async (signal) => {
      const { data, pagination } = await readGroups(shape.name, query, signal);
      return { values: data.map(({ group }) => group[key]).filter((value) => typeof value === "string"), isCut: pagination.hasNextPage };
    },
    labelOf: (value) => periodLabel(value, period, clock),
  };
}
