// Runs before the first paint, so that no page flashes in the wrong theme. It is a file of its own, because the content security policy
// forbids inline scripts.
(() => {
  let chosen = null;
  try {
    chosen = localStorage.getItem("blockbase.theme");
  } catch {
    // Storage may be forbidden. Then the scheme of the system applies.
  }
  const dark = chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.setAttribute("data-mantine-color-scheme", dark ? "dark" : "light");
})();
