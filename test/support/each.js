// Runs several command lines of paybox in one process, one after the other, for `eachEnds` in command-lines.ts.
// Arguments: the command lines as JSON. Prints a JSON line for each: its exit code and what it wrote.
import { writeSync } from 'node:fs';
import { main } from '../../src/main.ts';

let output = '';
for (const stream of [process.stdout, process.stderr]) {
  // Each command listens to them.
  stream.setMaxListeners(0);
  stream.write = (text) => {
    output += text;
    return true;
  };
}
process.setMaxListeners(0);
for (const args of JSON.parse(process.argv[2] ?? '[]')) {
  output = '';
  process.exitCode = undefined;
  await main(args);
  writeSync(1, `${JSON.stringify({ code: process.exitCode ?? 0, output })}\n`);
}
process.exit(0);
