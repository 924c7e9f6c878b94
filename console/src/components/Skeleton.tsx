import type { CSSProperties, ReactNode } from "react";
import classes from "./States.module.css";

/** Shows its content only after 200 ms of waiting. It takes its space from the start, so nothing moves when it appears. */
export function Late({ children }: { children: ReactNode }) {
  return <div className={classes.late}>{children}</div>;
}

/** A bar in place of a text. The sizes are pixels or CSS lengths. */
export function Bone({ width = "100%", height = 10, style }: { width?: number | string; height?: number | string; style?: CSSProperties }) {
  return <div className={classes.bone} style={{ width, height, ...style }} />;
}

const WIDTHS = ["34%", "18%", "26%", "12%", "22%"];

/** Placeholder rows of a table in their final height, until the data is loaded. */
export function SkeletonRows({ rows = 12, columns = 4 }: { rows?: number; columns?: number }) {
  return (
    <Late>
      <div className={classes.rows} aria-busy="true" aria-label="Loading" role="status">
        {Array.from({ length: rows }, (_, row) => (
          <div className={classes.row} key={row}>
            {Array.from({ length: columns }, (_, column) => (
              <Bone key={column} width={WIDTHS[(row + column * 2) % WIDTHS.length]!} />
            ))}
          </div>
        ))}
      </div>
    </Late>
  );
}

/** Placeholder lines of a form or a text. */
export function SkeletonLines({ lines = 6 }: { lines?: number }) {
  return (
    <Late>
      <div aria-busy="true" aria-label="Loading" role="status" style={{ display: "grid", gap: 16 }}>
        {Array.from({ length: lines }, (_, line) => (
          <Bone key={line} width={line % 3 === 2 ? "45%" : "80%"} height={14} />
        ))}
      </div>
    </Late>
  );
}
