import { lazy, Suspense } from "react";

export interface SlotSeries {
  label: string;
  /** A value for each place. Null is a gap. */
  values: (number | null)[];
}

export interface SlotChartProps {
  /** The names of the places along the axis, such as months or states. */
  slots: string[];
  /** At most six, because there are only so many colors. */
  series: SlotSeries[];
  kind: "line" | "bars";
  /** In pixels. */
  height: number;
  /** Describes the chart to people who cannot see it. They get its values from a table beside it. */
  label: string;
  /** Called with the place below the pointer, and with null when the pointer leaves. */
  onHover: (slot: number | null) => void;
  onPick: (slot: number, series: number) => void;
}

/** The color of a series. */
export const seriesColor = (index: number): string => `--bb-series-${index + 1}`;

const Drawn = lazy(() => import("./SlotChartImpl"));

/** A chart over named places, drawn by uPlot, which is loaded with the first chart. Meanwhile, the chart's space stays empty. */
export function SlotChart(props: SlotChartProps) {
  return (
    <div style={{ height: props.height, minWidth: 0 }} role="img" aria-label={props.label} data-slots={props.slots.length} data-kind={props.kind}>
      <Suspense fallback={null}>
        <Drawn {...props} />
      </Suspense>
    </div>
  );
}
