import { lazy, Suspense } from "react";

export interface ChartSeries {
  label: string;
  values: (number | null)[];
  tone?: "accent" | "bad" | "ok" | "dim";
}

export interface ChartProps {
  /** Points in time, in seconds since 1970. */
  times: number[];
  series: ChartSeries[];
  /** In pixels. */
  height?: number;
  /** Describes the chart to people who cannot see it. */
  label: string;
  kind?: "line" | "bars";
}

const Drawn = lazy(() => import("./ChartImpl"));

/** A chart over time, drawn by uPlot. uPlot is loaded when the first chart is shown. Meanwhile, the chart's space stays empty. */
export function Chart(props: ChartProps) {
  const height = props.height ?? 120;
  return (
    <div style={{ height, minWidth: 0 }} role="img" aria-label={props.label}>
      <Suspense fallback={null}>
        <Drawn {...props} height={height} />
      </Suspense>
    </div>
  );
}
