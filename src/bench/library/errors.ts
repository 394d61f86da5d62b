/** A step was done, and is not as expected: what was expected, and what is. */
export class NotAsExpected extends Error {
  override readonly name = 'NotAsExpected';
  /** Both sides, where the message does not say all. */
  readonly expected: string | undefined;
  readonly actual: string | undefined;
  /** The file with the screen at that moment; undefined where none was kept. */
  readonly screen: string | undefined;

  constructor(message: string, { expected, actual, screen }: { expected?: string; actual?: string; screen?: string }) {
    super(message);
    this.expected = expected;
    this.actual = actual;
    this.screen = screen;
  }
}

/** paybox cannot do what was asked; the message says why and, after a semicolon, what to do. */
export class PayboxRefusal extends Error {
  override readonly name = 'PayboxRefusal';

  constructor(message: string, fix = '') {
    super(fix === '' ? message : `${message}; ${fix}`);
  }
}
