import uPlot from "uplot";
import type { ChartProps } from "./Chart";
import { axisStyle, usePlot } from "./usePlot";

/** Hours and minutes in the reader's time zone. */
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

const TONES = { accent: "--bb-accent", bad: "--bb-red", ok: "--bb-green", dim: "--bb-text-dim" };

export default function ChartImpl({ times, series, height = 120, kind = "line" }: ChartProps) {
  const place = usePlot({
    identity: `${kind}\n${series.map(({ label, tone }) => `${label} ${tone ?? ""}`).join("\n")}`,
    height,
    // A bar for 0 would still have an outline.
    data: [times, ...series.map(({ values }) => (kind === "bars" ? values.map((value) => (value === 0 ? null : value)) : values))],
    make: (color) => {
      const axis = axisStyle(color);
      return {
        legend: { show: false },
        cursor: { y: false, points: { size: 6 } },
        scales: { x: { time: true }, y: { range: (_, __, max) => [0, Math.max(max ?? 0, 1) * 1.1] } },
        axes: [
          { ...axis, grid: { show: false }, size: 24, values: (_, splits) => splits.map((second) => clock.format(second * 1_000)) },
          { ...axis, size: 40, splits: (_, __, ___, max) => [0, niceHalf(max), niceHalf(max) * 2].filter((each) => each <= max) },
        ],
        series: [
          {},
          ...series.map(({ label, tone }) => {
            const stroke = color(TONES[tone ?? "accent"]);
            return kind === "bars"
              ? { label, stroke, fill: stroke, paths: uPlot.paths.bars!({ size: [0.7, 24] }), points: { show: false } }
              : { label, stroke, width: 1.5, points: { show: false } };
          }),
        ],
      };
    },
  });
  return <div ref={place} />;
}

/** The value of the line in the middle: a round number that is at most half of `max`. */
function niceHalf(max: number): number {
  const half = Math.max(max / 2, 0.5);
  const power = 10 ** Math.floor(Math.log10(half));
  return power * ([8, 5, 4, 2.5, 2, 1].find((step) => step * power <= half && (step * power) % 1 === 0) ?? 1);
}
