// Runs the console's matching of topics: JavaScript of the file of TypeScript in the first argument, on the pairs of a pattern and a
// topic in the second. Prints whether each matches.
import { readFileSync } from "node:fs";
import ts from "typescript";

const [source, pairs] = process.argv.slice(2).map((file) => readFileSync(file, "utf8"));
const options = { module: ts.ModuleKind.ESNext, target: ts.ScriptTarget.ES2022 };
const { outputText } = ts.transpileModule(source, { compilerOptions: options });
const { topicMatches } = await import(`data:text/javascript,${encodeURIComponent(outputText)}`);
console.log(JSON.stringify(JSON.parse(pairs).map(([pattern, topic]) => topicMatches(pattern, topic))));
