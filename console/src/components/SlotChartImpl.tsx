import { useEffect, useMemo, useRef } from "react";
import uPlot from "uplot";
import { type SlotChartProps, seriesColor } from "./SlotChart";
import { barAt, barWidth, cutName, namedPlaces, tickText, ticksOf, unitOf } from "./ticks";
import { axisStyle, usePlot } from "./usePlot";

const NUMBERS_PX = 56;
const NAMES_PX = 26;
/** With more places, points would hide the line. */
const POINTS_MAX = 100;
/** Lines differ by their dashes too, and not only by their colors. */
const DASHES: (number[] | undefined)[] = [undefined, [6, 3], [2, 3], [10, 3, 2, 3], [8, 6], [4, 2]];

type Values = (number | null)[];
const valuesOf = (plot: uPlot) => plot.data.slice(1) as Values[];
const widthOfBar = (plot: uPlot) => barWidth(plot.series.length - 1, plot.bbox.width / uPlot.pxRatio / plot.data[0].length);

/** The line that passes closest to a height. */
function closestLine(plot: uPlot, slot: number, top: number): number {
  const distances = valuesOf(plot).map((values) => {
    const value = values[slot];
    return value === null || value === undefined ? Number.POSITIVE_INFINITY : Math.abs(plot.valToPos(value, "y") - top);
  });
  return distances.indexOf(Math.min(...distances));
}

export default function SlotChartImpl({ slots, series, kind, height, onHover, onPick }: SlotChartProps) {
  const latest = useRef({ onHover, onPick });
  useEffect(() => {
    latest.current = { onHover, onPick };
  });
  const unit = unitOf(series.map(({ values }) => values));
  const data = useMemo<uPlot.AlignedData>(() => [slots.map((_, index) => index), ...series.map(({ values }) => values.map((value) => value && value / unit))], [slots, series, unit]);
  const place = usePlot({
    identity: JSON.stringify([kind, unit, slots, series.map(({ label }) => label)]),
    height,
    data,
    make: (color) => {
      const axis = axisStyle(color);
      const bars = (index: number): uPlot.Series.PathBuilder =>
        uPlot.paths.bars!({
          size: [1, Number.POSITIVE_INFINITY, 1],
          disp: {
            x0: { unit: 1, values: (plot) => slots.map((_, slot) => slot + (index - series.length / 2) * widthOfBar(plot)) },
            size: { unit: 1, values: (plot) => [widthOfBar(plot)] },
          },
        });
      return {
        legend: { show: false },
        // `show: true` would replace the function of uPlot that draws the points.
        cursor: { y: false, points: { size: 6, ...(kind === "line" ? {} : { show: false }) }, drag: { x: false, y: false, setScale: false } },
        scales: {
          x: { time: false, range: (plot) => [-0.5, plot.data[0].length - 0.5] },
          y: {
            range: (plot) => {
              const ticks = ticksOf(valuesOf(plot));
              return [ticks[0]!, ticks.at(-1)!];
            },
          },
        },
        axes: [
          { ...axis, grid: { show: false }, size: NAMES_PX, splits: (plot) => namedPlaces(slots, plot.width - NUMBERS_PX), values: (_, splits) => splits.map((slot) => cutName(slots[slot] ?? "")) },
          { ...axis, size: NUMBERS_PX, splits: (plot) => ticksOf(valuesOf(plot)), values: (_, splits) => splits.map((tick) => tickText(tick * unit)) },
        ],
        series: [
          {},
          ...series.map(({ label }, index): uPlot.Series => {
            const stroke = color(seriesColor(index));
            if (kind === "bars") return { label, width: 0, fill: stroke, paths: bars(index), points: { show: false } };
            const dash = DASHES[index];
            return { label, stroke, width: 2, ...(dash === undefined ? {} : { dash }), points: { ...(slots.length <= POINTS_MAX ? { show: true } : {}), size: 5, fill: stroke } };
          }),
        ],
        hooks: {
          setCursor: [(plot) => latest.current.onHover(plot.cursor.idx ?? null)],
          ready: [
            (plot) => {
              plot.over.style.cursor = "pointer";
              plot.over.addEventListener("click", ({ offsetX, offsetY }) => {
                const at = barAt(plot.posToVal(offsetX, "x"), slots.length, series.length, widthOfBar(plot));
                if (at !== undefined) latest.current.onPick(at.place, kind === "bars" ? at.series : closestLine(plot, at.place, offsetY));
              });
            },
          ],
        },
      };
    },
  });
  return <div ref={place} />;
}
