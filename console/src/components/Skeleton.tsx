import type { CSSProperties, ReactNode } from "react";
import classes from "./States.module.css";

/** Hides what waits until 200 ms have passed, without moving anything when it appears. */
export function Late({ children }: { children: ReactNode }) {
  return <div className={classes.late}>{children}</div>;
}

/** A bar in place of a text. Sizes in pixels, or CSS lengths. */
export function Bone({ width = "100%", height = 10, style }: { width?: number | string; height?: number | string; style?: CSSProperties }) {
  return <div className={classes.bone} style={{ width, height, ...style }} />;
}

const WIDTHS = ["34%", "18%", "26%", "12%", "22%"];

/** Rows of a table in their final height, until the data is there. */
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

/** Lines of a form or a text. */
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
