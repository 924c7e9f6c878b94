// Runs the console's matching of topics. The first argument is the TypeScript file, the second a file with pairs of a pattern and a topic.
// For each pair, it prints whether the topic matches the text as a pattern, and as a filter.
import { readFileSync } from "node:fs";
import ts from "typescript";

const [source, pairs] = process.argv.slice(2).map((file) => readFileSync(file, "utf8"));
const options = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 };
const { outputText } = ts.transpileModule(source, { compilerOptions: options });
const { topicMatches, topicPasses } = await import(`data:text/javascript,${encodeURIComponent(outputText)}`);
console.log(JSON.stringify(JSON.parse(pairs).map(([text, topic]) => [topicMatches(text, topic), topicPasses(text, topic)])));
