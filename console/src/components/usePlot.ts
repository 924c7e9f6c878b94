import { useComputedColorScheme } from "@mantine/core";
import { type RefObject, useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";

export interface PlotOptions {
  /** The options of a new plot. `color` gives the value of a variable of the theme, such as `--bb-accent`. */
  make: (color: (variable: string) => string) => Omit<uPlot.Options, "width" | "height">;
  data: uPlot.AlignedData;
  height: number;
  /** With another text there is a new plot, because its options differ. */
  identity: string;
}

/** A plot of uPlot in an element. It follows the width of the element and the theme. */
export function usePlot({ make, data, height, identity }: PlotOptions): RefObject<HTMLDivElement | null> {
  const place = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot>(null);
  const scheme = useComputedColorScheme();
  const latest = useRef({ make, data });
  useEffect(() => {
    if (latest.current.data !== data) plot.current?.setData(data);
    latest.current = { make, data };
  });
  useEffect(() => {
    const element = place.current!;
    const style = getComputedStyle(element);
    const width = () => Math.max(element.clientWidth, 50);
    const options = latest.current.make((variable) => style.getPropertyValue(variable).trim());
    const made = new uPlot({ ...options, width: width(), height }, latest.current.data, element);
    plot.current = made;
    const observer = new ResizeObserver(() => made.setSize({ width: width(), height }));
    observer.observe(element);
    return () => {
      observer.disconnect();
      made.destroy();
      plot.current = null;
    };
  }, [identity, height, scheme]);
  return place;
}

/** The look of an axis. */
export function axisStyle(color: (variable: string) => string): uPlot.Axis {
  return { stroke: color("--bb-text-dim"), font: "11px system-ui, sans-serif", ticks: { show: false }, grid: { stroke: color("--bb-line"), width: 1 } };
}
