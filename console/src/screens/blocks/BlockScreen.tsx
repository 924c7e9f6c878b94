export function BlockScreen() {
  return null;
}
