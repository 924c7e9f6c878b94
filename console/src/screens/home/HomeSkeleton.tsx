import { Bone, Late } from "../../components/Skeleton";
import classes from "./Home.module.css";

/** Placeholders for the parts of the page, until the data is loaded. */
export function HomeSkeleton() {
  return (
    <Late>
      <div className={classes.home} aria-busy="true" aria-label="Loading" role="status">
        <div className={classes.activity}>
          {[0, 1].map((each) => (
            <div key={each} className={classes.card}>
              <Bone width={140} height={14} />
              <Bone height={110} style={{ marginTop: 16 }} />
            </div>
          ))}
        </div>
        <div className={classes.columns}>
          <div className={classes.card}>
            {Array.from({ length: 6 }, (_, row) => (
              <Bone key={row} height={14} width={`${60 + ((row * 13) % 30)}%`} style={{ marginBlock: 11 }} />
            ))}
          </div>
          <div className={classes.card}>
            {Array.from({ length: 6 }, (_, row) => (
              <Bone key={row} height={14} width={`${50 + ((row * 17) % 40)}%`} style={{ marginBlock: 11 }} />
            ))}
          </div>
        </div>
      </div>
    </Late>
  );
}
