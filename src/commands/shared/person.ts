import { createInterface } from 'node:readline/promises';

const ANSWERS: ReadonlyMap<string, boolean> = new Map([
  ['y', true],
  ['yes', true],
  ['n', false],
  ['no', false],
]);

/**
 * Asks the person at the terminal; returns undefined if there is none. An answer other than yes and no is undefined.
 */
export function personAtTerminal() {
  const { stdin: input, stderr: output } = process;
  if (!input.isTTY || !output.isTTY) return undefined;
  return async (question: string, signal: AbortSignal): Promise<boolean | undefined> => {
    const lines = createInterface({ input, output });
    try {
      return ANSWERS.get((await lines.question(`\n${question} [y/n] `, { signal })).trim().toLowerCase());
    } finally {
      lines.close();
    }
  };
}
