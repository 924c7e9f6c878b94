import classes from "./Initials.module.css";

/** The first letters of a person's name. The console loads no pictures from other sites. */
export function Initials({ name, size = 22 }: { name: string; size?: number }) {
  const words = name.trim().split(/[\s@._-]+/).filter((word) => word !== "");
  const letters = [...(words[0] ?? "?")].slice(0, 1).concat([...(words[1] ?? "")].slice(0, 1));
  return (
    <span className={classes.initials} style={{ width: size, height: size, fontSize: Math.round(size * 0.42) }} aria-hidden="true">
      {letters.join("").toUpperCase()}
    </span>
  );
}
