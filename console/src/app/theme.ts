/** The design as a theme of Mantine: one accent, neutral grays, five text sizes. */
import { createTheme, type CSSVariablesResolver, type MantineColorsTuple } from "@mantine/core";

const indigo: MantineColorsTuple = ["#eef2ff", "#e0e7ff", "#c7d2fe", "#a5b4fc", "#8b96f8", "#6d72f1", "#5a56e6", "#4f46e5", "#4338ca", "#3730a3"];
const gray: MantineColorsTuple = ["#fafafb", "#f4f4f6", "#e9e9ed", "#dcdce2", "#c3c3cc", "#8a8a96", "#6b6b77", "#52525d", "#33333c", "#1c1c22"];
const dark: MantineColorsTuple = ["#ececf1", "#c9c9d2", "#a3a3b0", "#777785", "#3d3d48", "#2b2b33", "#1e1e25", "#141419", "#101014", "#0b0b0e"];
const green: MantineColorsTuple = ["#ecfdf3", "#d1fadf", "#a6f4c5", "#6ce9a6", "#3ccb7f", "#23a566", "#15803d", "#116c34", "#14532d", "#0d3b20"];
const red: MantineColorsTuple = ["#fef2f2", "#fee2e2", "#fecaca", "#fca5a5", "#f87171", "#ef4444", "#d92d20", "#b91c1c", "#991b1b", "#7f1d1d"];
const amber: MantineColorsTuple = ["#fffbeb", "#fef3c7", "#fde68a", "#fcd34d", "#fbbf24", "#d97706", "#b45309", "#92400e", "#78350f", "#5c2a0c"];
const blue: MantineColorsTuple = ["#eff6ff", "#dbeafe", "#bfdbfe", "#93c5fd", "#60a5fa", "#3b82f6", "#2563eb", "#1d4ed8", "#1e40af", "#1e3a8a"];

/** Only floating parts have this shadow. No other part has one. */
const shadow = "0 1px 2px rgba(0, 0, 0, 0.08), 0 8px 24px rgba(0, 0, 0, 0.14)";
const motion = { duration: 120, transition: "fade" as const };

export const theme = createTheme({
  colors: { indigo, gray, dark, green, red, amber, blue, yellow: amber },
  primaryColor: "indigo",
  primaryShade: { light: 7, dark: 7 },
  white: "#ffffff",
  black: "#1c1c22",
  fontFamily: 'system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", "Noto Sans", sans-serif',
  fontFamilyMonospace: 'ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", "DejaVu Sans Mono", monospace',
  fontSizes: { xs: "12px", sm: "13px", md: "14px", lg: "16px", xl: "20px" },
  lineHeights: { xs: "1.35", sm: "1.4", md: "1.45", lg: "1.4", xl: "1.3" },
  spacing: { xs: "4px", sm: "8px", md: "12px", lg: "16px", xl: "24px", xxl: "32px" },
  radius: { xs: "4px", sm: "6px", md: "6px", lg: "6px", xl: "6px" },
  defaultRadius: "sm",
  shadows: { xs: shadow, sm: shadow, md: shadow, lg: shadow, xl: shadow },
  breakpoints: { xs: "30em", sm: "48em", md: "62em", lg: "75em", xl: "88em" },
  cursorType: "pointer",
  focusRing: "auto",
  respectReducedMotion: true,
  // The components are given by name, so that each is loaded with the first screen that uses it.
  components: {
    Button: { defaultProps: { size: "xs" } },
    ActionIcon: { defaultProps: { variant: "subtle", color: "gray", size: 28 } },
    Input: { defaultProps: { size: "xs" } },
    TextInput: { defaultProps: { size: "xs" } },
    PasswordInput: { defaultProps: { size: "xs", visibilityToggleFocusable: true } },
    Textarea: { defaultProps: { size: "xs" } },
    Select: { defaultProps: { size: "xs", checkIconPosition: "right", comboboxProps: { transitionProps: motion } } },
    Checkbox: { defaultProps: { size: "xs" } },
    Switch: { defaultProps: { size: "xs" } },
    SegmentedControl: { defaultProps: { size: "xs", transitionDuration: 120 } },
    // A menu gives the focus to its first item. Mantine's placeholder for the focus is not allowed as a child of a menu.
    Menu: { defaultProps: { transitionProps: motion, position: "bottom-end", withinPortal: true, withInitialFocusPlaceholder: false } },
    Popover: { defaultProps: { transitionProps: motion } },
    Notification: { defaultProps: { closeButtonProps: { "aria-label": "Dismiss" } } },
    Modal: { defaultProps: { transitionProps: motion, overlayProps: { backgroundOpacity: 0.45 }, closeButtonProps: { "aria-label": "Close" } } },
    Drawer: { defaultProps: { transitionProps: { duration: 140 }, overlayProps: { backgroundOpacity: 0.45 }, closeButtonProps: { "aria-label": "Close" } } },
    Loader: { defaultProps: { size: 16 } },
    Kbd: { defaultProps: { size: "xs" } },
  },
});

const lightTokens = {
  "--bb-bg": "#ffffff",
  "--bb-bg-rail": "#f7f7f9",
  "--bb-bg-raised": "#ffffff",
  "--bb-bg-sunken": "#f7f7f9",
  "--bb-bg-hover": "#f2f2f5",
  "--bb-bg-selected": "#eef0ff",
  "--bb-line": "#e6e6eb",
  "--bb-line-strong": "#d3d3db",
  "--bb-control": "#8a8a96",
  "--bb-text": "#1c1c22",
  "--bb-text-dim": "#5d5d69",
  "--bb-text-null": "#6f6f7b",
  "--bb-accent": "#4f46e5",
  "--bb-accent-text": "#4338ca",
  "--bb-green": "#13773a",
  "--bb-green-bg": "#e9f9ef",
  "--bb-red": "#b91c1c",
  "--bb-red-bg": "#fdeeee",
  "--bb-amber": "#92400e",
  "--bb-amber-bg": "#fef5e0",
  "--bb-blue": "#1d4ed8",
  "--bb-blue-bg": "#ecf3ff",
  "--bb-glow": "rgba(79, 70, 229, 0.18)",
  // The lines and bars of a chart. These colors mean no state.
  "--bb-series-1": "#4f46e5",
  "--bb-series-2": "#c2410c",
  "--bb-series-3": "#0f766e",
  "--bb-series-4": "#be185d",
  "--bb-series-5": "#6b7280",
  "--bb-series-6": "#0284c7",
};

const darkTokens: typeof lightTokens = {
  "--bb-bg": "#101014",
  "--bb-bg-rail": "#15151a",
  "--bb-bg-raised": "#1b1b21",
  "--bb-bg-sunken": "#16161b",
  "--bb-bg-hover": "#1f1f26",
  "--bb-bg-selected": "#25244a",
  "--bb-line": "#27272f",
  "--bb-line-strong": "#373742",
  "--bb-control": "#737382",
  "--bb-text": "#ececf1",
  "--bb-text-dim": "#a3a3b0",
  "--bb-text-null": "#8d8d9b",
  "--bb-accent": "#818cf8",
  "--bb-accent-text": "#a5b4fc",
  "--bb-green": "#5bd691",
  "--bb-green-bg": "#12291c",
  "--bb-red": "#fc9a9a",
  "--bb-red-bg": "#331719",
  "--bb-amber": "#fbc85f",
  "--bb-amber-bg": "#2e2210",
  "--bb-blue": "#8fbcff",
  "--bb-blue-bg": "#14233d",
  "--bb-glow": "rgba(129, 140, 248, 0.28)",
  "--bb-series-1": "#818cf8",
  "--bb-series-2": "#fb923c",
  "--bb-series-3": "#2dd4bf",
  "--bb-series-4": "#f472b6",
  "--bb-series-5": "#9ca3af",
  "--bb-series-6": "#38bdf8",
};

const mantineTokens = {
  "--mantine-color-body": "var(--bb-bg)",
  "--mantine-color-text": "var(--bb-text)",
  "--mantine-color-dimmed": "var(--bb-text-dim)",
  "--mantine-color-placeholder": "var(--bb-text-null)",
  "--mantine-color-anchor": "var(--bb-accent-text)",
  "--mantine-color-default": "var(--bb-bg-raised)",
  "--mantine-color-default-hover": "var(--bb-bg-hover)",
  "--mantine-color-default-color": "var(--bb-text)",
  "--mantine-color-default-border": "var(--bb-line-strong)",
  "--mantine-color-error": "var(--bb-red)",
  "--mantine-color-gray-light-color": "var(--bb-text-dim)",
  "--mantine-color-gray-outline": "var(--bb-text-dim)",
  "--mantine-color-green-light": "var(--bb-green-bg)",
  "--mantine-color-green-light-color": "var(--bb-green)",
  "--mantine-color-red-light": "var(--bb-red-bg)",
  "--mantine-color-red-light-color": "var(--bb-red)",
  "--mantine-color-amber-light": "var(--bb-amber-bg)",
  "--mantine-color-amber-light-color": "var(--bb-amber)",
  "--mantine-color-blue-light": "var(--bb-blue-bg)",
  "--mantine-color-blue-light-color": "var(--bb-blue)",
  // Mantine's own hover backgrounds are too dark for these texts.
  "--mantine-color-green-light-hover": "var(--bb-green-bg)",
  "--mantine-color-red-light-hover": "var(--bb-red-bg)",
  "--mantine-color-amber-light-hover": "var(--bb-amber-bg)",
  "--mantine-color-blue-light-hover": "var(--bb-blue-bg)",
  "--mantine-color-indigo-light-color": "var(--bb-accent-text)",
  "--mantine-color-indigo-outline": "var(--bb-accent-text)",
};

export const cssVariables: CSSVariablesResolver = () => ({
  variables: { "--bb-rail": "220px", "--bb-inspector": "380px", "--bb-row": "36px", "--bb-row-compact": "30px" },
  light: { ...mantineTokens, ...lightTokens },
  dark: { ...mantineTokens, ...darkTokens },
});
