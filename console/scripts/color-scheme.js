// Runs before the first paint, so that no page flashes in the other theme. A file of its own: the policy allows no inline script.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("blockbase.theme");
  } catch {
    // Storage may be forbidden; the system's scheme holds then.
  }
  const dark = chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.setAttribute("data-mantine-color-scheme", dark ? "dark" : "light");
})();
