/**
 * Templates of objects to start with. The console creates them through the public API like any other object. After that, the person can
 * change everything.
 */
import type { RelationDefinition } from "../model/relations";
import type { DataObject } from "../../../api/types";

/** A sample record. `refs` sets references to earlier samples: `[object, index]`. */
export interface SampleRecord {
  values: Record<string, string | number | boolean | string[]>;
  refs?: Record<string, [object: string, place: number]>;
}

export interface Template {
  id: "blog" | "crm" | "todo" | "shop";
  label: string;
  sentence: string;
  /** The object whose records are shown after the creation. */
  main: string;
  objects: DataObject[];
  relations: RelationDefinition[];
  /** Unique groups that contain references. They are set after the relations exist. */
  groups?: { object: string; uniqueTogether: string[][] }[];
  samples: { object: string; records: SampleRecord[] }[];
  /** Many-to-many links between samples: `[object, index, relation, other object, indexes]`. */
  links?: [object: string, place: number, relation: string, other: string, places: number[]][];
}

const todo: Template = {
  id: "todo",
  label: "To-do",
  sentence: "Lists with to-dos that have a due day, a priority and labels.",
  main: "todo",
  objects: [
    { name: "todo_list", label: "List", fields: [{ name: "name", type: "text", required: true, max: 80 }, { name: "color", type: "enum", options: ["gray", "blue", "green", "amber", "red"], default: "gray" }] },
    {
      name: "todo",
      label: "To-do",
      fields: [
        { name: "title", type: "text", required: true, max: 200 },
        { name: "done", type: "boolean", default: false, indexed: true },
        { name: "priority", type: "enum", options: ["low", "normal", "high"], default: "normal" },
        { name: "due_on", type: "date", indexed: true },
        { name: "notes", type: "text" },
      ],
    },
    { name: "label", fields: [{ name: "name", type: "text", required: true, isUnique: true, max: 40 }] },
  ],
  relations: [
    { name: "list", kind: "many_to_one", source: "todo", target: "todo_list", onDelete: "cascade" },
    { name: "labels", kind: "many_to_many", source: "todo", target: "label" },
  ],
  samples: [
    { object: "todo_list", records: [{ values: { name: "Home", color: "green" } }, { values: { name: "Work", color: "blue" } }] },
    { object: "label", records: [{ values: { name: "errand" } }, { values: { name: "five minutes" } }] },
    {
      object: "todo",
      records: [
        { values: { title: "Buy milk", priority: "normal", due_on: "2026-12-01" }, refs: { list_id: ["todo_list", 0] } },
        { values: { title: "Water the plants", done: true, priority: "low" }, refs: { list_id: ["todo_list", 0] } },
        { values: { title: "Answer Maria's mail", priority: "high", due_on: "2026-12-02", notes: "She asked about the invoice." }, refs: { list_id: ["todo_list", 1] } },
        { values: { title: "Plan the release", priority: "high" }, refs: { list_id: ["todo_list", 1] } },
      ],
    },
  ],
  links: [
    ["todo", 0, "labels", "label", [0, 1]],
    ["todo", 2, "labels", "label", [1]],
  ],
};

const blog: Template = {
  id: "blog",
  label: "Blog",
  sentence: "Posts with an author, tags and comments.",
  main: "post",
  objects: [
    { name: "author", label: "Author", fields: [{ name: "name", type: "text", required: true, max: 120 }, { name: "email", type: "email", isUnique: true }, { name: "bio", type: "text" }] },
    {
      name: "post",
      label: "Post",
      fields: [
        { name: "title", type: "text", required: true, max: 160 },
        { name: "slug", type: "slug", required: true, isUnique: true },
        { name: "body", type: "text" },
        { name: "status", type: "enum", options: ["draft", "review", "published"], default: "draft", required: true, indexed: true },
        { name: "published_at", type: "datetime", indexed: true },
      ],
    },
    { name: "tag", label: "Tag", fields: [{ name: "name", type: "slug", required: true, isUnique: true }] },
    { name: "comment", label: "Comment", fields: [{ name: "name", type: "text", required: true, max: 80 }, { name: "body", type: "text", required: true, max: 4000 }, { name: "approved", type: "boolean", default: false }] },
  ],
  relations: [
    { name: "author", kind: "many_to_one", source: "post", target: "author", onDelete: "restrict" },
    { name: "tags", kind: "many_to_many", source: "post", target: "tag" },
    { name: "post", kind: "many_to_one", source: "comment", target: "post", onDelete: "cascade" },
  ],
  samples: [
    { object: "author", records: [{ values: { name: "Ada Lovelace", email: "ada@example.com", bio: "Writes about engines." } }, { values: { name: "Grace Hopper", email: "grace@example.com" } }] },
    { object: "tag", records: [{ values: { name: "news" } }, { values: { name: "how-to" } }, { values: { name: "history" } }] },
    {
      object: "post",
      records: [
        { values: { title: "Hello", slug: "hello", body: "The first post.", status: "published", published_at: "2026-01-05T09:00:00Z" }, refs: { author_id: ["author", 0] } },
        { values: { title: "How we name things", slug: "how-we-name-things", body: "Plain names, units last.", status: "published", published_at: "2026-02-10T09:00:00Z" }, refs: { author_id: ["author", 1] } },
        { values: { title: "A draft", slug: "a-draft", status: "draft" }, refs: { author_id: ["author", 0] } },
      ],
    },
    {
      object: "comment",
      records: [
        { values: { name: "Linus", body: "Welcome.", approved: true }, refs: { post_id: ["post", 0] } },
        { values: { name: "Margaret", body: "What about plurals?", approved: true }, refs: { post_id: ["post", 1] } },
      ],
    },
  ],
  links: [
    ["post", 0, "tags", "tag", [0]],
    ["post", 1, "tags", "tag", [1, 2]],
  ],
};

const crm: Template = {
  id: "crm",
  label: "CRM",
  sentence: "Companies, contacts, deals with a stage and an amount, and what was done about them.",
  main: "deal",
  objects: [
    {
      name: "company",
      label: "Company",
      fields: [
        { name: "name", type: "text", required: true, isUnique: true, max: 160 },
        { name: "website", type: "url" },
        { name: "industry", type: "enum", options: ["software", "retail", "health", "finance", "other"] },
        { name: "employees", type: "integer", min: 0 },
      ],
    },
    {
      name: "contact",
      label: "Contact",
      fields: [
        { name: "name", type: "text", required: true, max: 120 },
        { name: "email", type: "email", isUnique: true },
        { name: "phone", type: "text", pattern: "^\\+?[0-9 ()/-]{5,}$" },
        { name: "position", type: "text" },
      ],
    },
    {
      name: "deal",
      label: "Deal",
      fields: [
        { name: "title", type: "text", required: true, max: 160 },
        { name: "stage", type: "enum", options: ["lead", "qualified", "proposal", "won", "lost"], default: "lead", required: true, indexed: true },
        { name: "amount", type: "currency", min: 0 },
        { name: "probability", type: "percentage", min: 0, max: 100 },
        { name: "closes_on", type: "date", indexed: true },
      ],
    },
    { name: "activity", label: "Activity", fields: [{ name: "kind", type: "enum", options: ["call", "mail", "meeting"], required: true }, { name: "note", type: "text" }, { name: "happened_at", type: "datetime", required: true, indexed: true }] },
  ],
  relations: [
    { name: "company", kind: "many_to_one", source: "contact", target: "company", onDelete: "set_null" },
    { name: "company", kind: "many_to_one", source: "deal", target: "company", onDelete: "restrict" },
    { name: "contact", kind: "many_to_one", source: "deal", target: "contact", onDelete: "set_null" },
    { name: "deal", kind: "many_to_one", source: "activity", target: "deal", onDelete: "cascade" },
  ],
  samples: [
    { object: "company", records: [{ values: { name: "Northwind", website: "https://example.com", industry: "retail", employees: 120 } }, { values: { name: "Fabrikam", industry: "software", employees: 18 } }] },
    {
      object: "contact",
      records: [
        { values: { name: "Maria Anders", email: "maria@example.com", phone: "+49 30 1234567", position: "Buyer" }, refs: { company_id: ["company", 0] } },
        { values: { name: "Chen Wei", email: "chen@example.com", position: "Founder" }, refs: { company_id: ["company", 1] } },
      ],
    },
    {
      object: "deal",
      records: [
        { values: { title: "Yearly license", stage: "proposal", amount: 12500, probability: 60, closes_on: "2026-12-15" }, refs: { company_id: ["company", 0], contact_id: ["contact", 0] } },
        { values: { title: "Pilot", stage: "lead", amount: 900.5, probability: 20 }, refs: { company_id: ["company", 1], contact_id: ["contact", 1] } },
        { values: { title: "Support", stage: "won", amount: 2400 }, refs: { company_id: ["company", 0] } },
      ],
    },
    { object: "activity", records: [{ values: { kind: "call", note: "Asked for a proposal.", happened_at: "2026-11-02T10:30:00Z" }, refs: { deal_id: ["deal", 0] } }] },
  ],
};

const shop: Template = {
  id: "shop",
  label: "Shop",
  sentence: "Products in categories, customers, and orders with their items.",
  main: "product",
  objects: [
    { name: "category", label: "Category", fields: [{ name: "name", type: "text", required: true, max: 80 }, { name: "slug", type: "slug", required: true, isUnique: true }] },
    {
      name: "product",
      label: "Product",
      fields: [
        { name: "name", type: "text", required: true, max: 160 },
        { name: "sku", type: "slug", required: true, isUnique: true },
        { name: "description", type: "text" },
        { name: "price", type: "currency", required: true, min: 0 },
        { name: "stock", type: "integer", default: 0, min: 0 },
        { name: "active", type: "boolean", default: true, indexed: true },
      ],
    },
    { name: "customer", label: "Customer", fields: [{ name: "name", type: "text", required: true, max: 120 }, { name: "email", type: "email", required: true, isUnique: true }] },
    {
      name: "order",
      label: "Order",
      fields: [
        { name: "number", type: "text", required: true, isUnique: true, pattern: "^[0-9]{4}-[0-9]+$" },
        { name: "status", type: "enum", options: ["open", "paid", "sent", "cancelled"], default: "open", required: true, indexed: true },
        { name: "placed_at", type: "datetime", required: true, indexed: true },
      ],
    },
    { name: "order_item", label: "Order item", fields: [{ name: "quantity", type: "integer", required: true, default: 1, min: 1 }, { name: "unit_price", type: "currency", required: true, min: 0 }] },
  ],
  relations: [
    { name: "category", kind: "many_to_one", source: "product", target: "category", onDelete: "set_null" },
    { name: "customer", kind: "many_to_one", source: "order", target: "customer", onDelete: "restrict", required: true },
    { name: "order", kind: "many_to_one", source: "order_item", target: "order", onDelete: "cascade", required: true },
    { name: "product", kind: "many_to_one", source: "order_item", target: "product", onDelete: "restrict", required: true },
  ],
  groups: [{ object: "order_item", uniqueTogether: [["order_id", "product_id"]] }],
  samples: [
    { object: "category", records: [{ values: { name: "Coffee", slug: "coffee" } }, { values: { name: "Cups", slug: "cups" } }] },
    {
      object: "product",
      records: [
        { values: { name: "House blend, 250 g", sku: "house-blend-250", price: 7.9, stock: 40 }, refs: { category_id: ["category", 0] } },
        { values: { name: "Espresso, 1 kg", sku: "espresso-1000", price: 24.5, stock: 12 }, refs: { category_id: ["category", 0] } },
        { values: { name: "Blue cup", sku: "cup-blue", price: 11, stock: 3 }, refs: { category_id: ["category", 1] } },
      ],
    },
    { object: "customer", records: [{ values: { name: "Maria Anders", email: "maria@example.com" } }, { values: { name: "Chen Wei", email: "chen@example.com" } }] },
    {
      object: "order",
      records: [
        { values: { number: "2026-1", status: "paid", placed_at: "2026-11-01T08:15:00Z" }, refs: { customer_id: ["customer", 0] } },
        { values: { number: "2026-2", status: "open", placed_at: "2026-11-03T17:40:00Z" }, refs: { customer_id: ["customer", 1] } },
      ],
    },
    {
      object: "order_item",
      records: [
        { values: { quantity: 2, unit_price: 7.9 }, refs: { order_id: ["order", 0], product_id: ["product", 0] } },
        { values: { quantity: 1, unit_price: 11 }, refs: { order_id: ["order", 0], product_id: ["product", 2] } },
        { values: { quantity: 1, unit_price: 24.5 }, refs: { order_id: ["order", 1], product_id: ["product", 1] } },
      ],
    },
  ],
};

export const TEMPLATES: Template[] = [todo, blog, crm, shop];

/** The template with a prefix before every object's name, so that the names do not clash with existing objects. */
export function prefixed(template: Template, prefix: string): Template {
  if (prefix === "") return template;
  const named = (name: string) => prefix + name;
  return {
    ...template,
    main: named(template.main),
    objects: template.objects.map((object) => ({ ...object, name: named(object.name) })),
    relations: template.relations.map((relation) => ({ ...relation, source: named(relation.source), target: named(relation.target) })),
    ...(template.groups === undefined ? {} : { groups: template.groups.map((group) => ({ ...group, object: named(group.object) })) }),
    samples: template.samples.map(({ object, records }) => ({
      object: named(object),
      records: records.map(({ values, refs }) => ({ values, ...(refs === undefined ? {} : { refs: Object.fromEntries(Object.entries(refs).map(([key, [of, place]]) => [key, [named(of), place]])) }) })),
    })),
    ...(template.links === undefined ? {} : { links: template.links.map(([object, place, relation, other, places]) => [named(object), place, relation, named(other), places]) }),
  };
}
