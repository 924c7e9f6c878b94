import { Fragment } from "react";
import { type Word, isSpaced } from "./words";
import classes from "./Filters.module.css";

/** A filter in words, with its names and values marked. */
export function Sentence({ words }: { words: Word[] }) {
  return words.map((word, index) => (
    // The same words can occur several times, so the index is the key.
    <Fragment key={index}>
      {isSpaced(words[index - 1], word) ? " " : ""}
      {word.as === "field" || word.as === "value" || word.as === "raw" ? <bdi className={classes[word.as]}>{word.text}</bdi> : <span className={word.as === "join" ? classes.join : "dim"}>{word.text}</span>}
    </Fragment>
  ));
}
