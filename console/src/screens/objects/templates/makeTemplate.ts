/** Creates a template: objects, relations, groups, then the sample records. A second attempt does not repeat steps that are done. */
import { type Described, api, describe, ok, requestRaw } from "../../../api/client";
import { changeLinks } from "../../../api/records";
import { quantity } from "../../../api/numbers";
import { defaultOnDelete, relationTitle } from "../model/relations";
import type { Template } from "./templates";

export interface TemplateStep {
  id: string;
  sentence: string;
  /** The request, if it is known before the run. Absent if it needs ids from earlier steps. */
  request?: Described;
  run: (made: Made) => Promise<void>;
}

/** The ids of the sample records, by object, in their order. */
export interface Made {
  ids: Map<string, string[]>;
  done: Set<string>;
}

export function templateSteps(template: Template, withSamples: boolean): TemplateStep[] {
  const send = (made: Described) => async () => {
    await requestRaw(made.method, made.path, { body: made.body });
  };
  const fixed = (id: string, sentence: string, made: Described): TemplateStep => ({ id, sentence, request: made, run: send(made) });
  const steps: TemplateStep[] = [
    ...template.objects.map((object) => fixed(`object ${object.name}`, `Create ${object.name} with ${quantity(object.fields.length, "field")}`, describe("post", "/api/v1/objects", { body: object }))),
    ...template.relations.map((relation) => {
      const body = { ...relation, onDelete: relation.onDelete ?? defaultOnDelete(relation) };
      return fixed(`relation ${relation.source}.${relation.name}`, `Relate ${relationTitle(relation)}`, describe("post", "/api/v1/relationships", { body }));
    }),
    ...(template.groups ?? []).map(({ object, uniqueTogether }) => fixed(`groups ${object}`, `Keep ${uniqueTogether.map((group) => group.join(" and ")).join("; ")} of ${object} unique`, describe("patch", "/api/v1/objects/{name}", { params: { path: { name: object } }, body: { constraints: { uniqueTogether } } }))),
  ];
  if (!withSamples) return steps;
  for (const { object, records } of template.samples)
    steps.push({
      id: `samples ${object}`,
      sentence: `Add ${quantity(records.length, "record")} to ${object}`,
      run: async (made) => {
        const data = records.map(({ values, refs = {} }) => ({ ...values, ...Object.fromEntries(Object.entries(refs).map(([key, [of, place]]) => [key, made.ids.get(of)![place]!])) }));
        const { ids } = await ok(api.POST("/api/v1/data/{object}/bulk", { params: { path: { object } }, body: { data } }));
        made.ids.set(object, ids);
      },
    });
  const links = template.links ?? [];
  if (links.length > 0)
    steps.push({
      id: "links",
      sentence: `Link ${quantity(links.length, "record")}`,
      run: async (made) => {
        for (const [object, place, relation, other, places] of links)
          await changeLinks(object, made.ids.get(object)![place]!, relation, places.map((each) => made.ids.get(other)![each]!), "add");
      },
    });
  return steps;
}

/** Runs the remaining steps in order. Throws at the first step that fails. `made.done` has the steps that are done. */
export async function runTemplate(steps: TemplateStep[], made: Made, onStep: (step: TemplateStep) => void): Promise<void> {
  for (const step of steps) {
    if (made.done.has(step.id)) continue;
    onStep(step);
    await step.run(made);
    made.done.add(step.id);
  }
}

