/** What a run has measured so far. Durations are milliseconds. */
export class Measurements {
  /** From the call of send-qr to its SUCCESS. */
  readonly confirmedMs: number[] = [];
  /** From the call of the test callback to the first screen that tells of the payment. */
  readonly paidShownMs: number[] = [];
  /** From the gateway's taking the payment to the box's report of it, by the gateway's clock. */
  readonly reportedMs: number[] = [];
  /** From power on to the gateway's welcome. */
  readonly registeredMs: number[] = [];
  /** Of send-qr, by code, with what kept a push from being sent at all. */
  readonly answers = new Map<string, number>();
  payments = 0;
  /** How long the shops were open. */
  loadMs = 0;
  /** Until all boxes were registered. */
  allRegisteredMs = 0;

  get pushes(): number {
    return [...this.answers.values()].reduce((sum, count) => sum + count, 0);
  }

  answered(code: string): void {
    this.answers.set(code, (this.answers.get(code) ?? 0) + 1);
  }
}
