export default function Diagram(_: { schema: import("../../../api/schema-live").Schema }) {
  return null;
}
