// Runs the console's matching of topics: JavaScript of the file of TypeScript in the first argument, on the pairs of a text and a
// topic in the second. Prints for each whether the topic matches the text as a pattern, and as a filter.
import { readFileSync } from "node:fs";
import ts from "typescript";

const [source, pairs] = process.argv.slice(2).map((file) => readFileSync(file, "utf8"));
const options = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 };
const { outputText } = ts.transpileModule(source, { compilerOptions: options });
const { topicMatches, topicPasses } = await import(`data:text/javascript,${encodeURIComponent(outputText)}`);
console.log(JSON.stringify(JSON.parse(pairs).map(([text, topic]) => [topicMatches(text, topic), topicPasses(text, topic)])));
