import type { Key } from '../../agent/contract.ts';
import { isInForeground, type Keyboard, watchKeyboard } from '../../agent/peripherals/keyboard.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';

/** The terminal that a command runs in, as far as it is one. */
export interface Terminal {
  output: NodeJS.WriteStream | undefined;
  keyboard: Keyboard | undefined;
}

/** What the keys do, for a banner. */
export const KEYS_HELP =
  'Esc takes away what is on the screen, r says the last payment again, h shows the last payments';

/** Takes the terminal's output and keys, where there are such; Ctrl-C stays an interrupt. */
export function takeTerminal(io: { clock: Clock; log: Logger }, press: (key: Key) => void): Terminal {
  const output = process.stdout.isTTY ? process.stdout : undefined;
  if (output !== undefined) doNotWaitFor(output);
  const hasKeys = output !== undefined && process.stdin.isTTY && isInForeground();
  const interrupt = () => {
    process.kill(process.pid, 'SIGINT');
  };
  return { output, keyboard: hasKeys ? watchKeyboard(process.stdin, io, press, interrupt) : undefined };
}

/**
 * Node writes to a terminal as to a file: one that is stopped, by Ctrl-S or by a reader that has gone, would stop the box
 * with it. There is no public way to say otherwise.
 */
function doNotWaitFor(output: NodeJS.WriteStream): void {
  const { _handle: handle } = output as { _handle?: { setBlocking?(blocking: boolean): void } };
  handle?.setBlocking?.(false);
}
