/** Reports a step that ran with another result than expected, with both values. */
export class NotAsExpected extends Error {
  override readonly name = 'NotAsExpected';
  /** The expected value, where the message does not say everything. */
  readonly expected: string | undefined;
  readonly actual: string | undefined;
  /** The file with the screen at that moment; undefined if no file was written. */
  readonly screen: string | undefined;

  constructor(message: string, { expected, actual, screen }: { expected?: string; actual?: string; screen?: string }) {
    super(message);
    this.expected = expected;
    this.actual = actual;
    this.screen = screen;
  }
}

/** Reports that paybox cannot run a call. The message says why and, after a semicolon, what to do. */
export class PayboxRefusal extends Error {
  override readonly name = 'PayboxRefusal';

  constructor(message: string, fix = '') {
    super(fix === '' ? message : `${message}; ${fix}`);
  }
}
