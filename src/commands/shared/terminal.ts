import type { Key } from '../../device/agent/contract.ts';
import { isInForeground, type Keyboard, watchKeyboard } from '../../device/agent/peripherals/keyboard.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Logger } from '../../lib/log.ts';

/** The command's terminal, if it has one. */
export interface Terminal {
  output: NodeJS.WriteStream | undefined;
  keyboard: Keyboard | undefined;
}

/** Explains the keys in a banner. */
export const KEYS_HELP =
  'Esc takes away what is on the screen, r says the last payment again, h shows the last payments';

/** Takes over the terminal's output and keys, if there are any; Ctrl-C still interrupts. */
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
 * Makes output not wait. Node writes to a terminal synchronously, so a paused terminal (Ctrl-S, a reader that is gone) would stop the box.
 * Node has no public way to change that.
 */
function doNotWaitFor(output: NodeJS.WriteStream): void {
  const { _handle: handle } = output as { _handle?: { setBlocking?(blocking: boolean): void } };
  handle?.setBlocking?.(false);
}
