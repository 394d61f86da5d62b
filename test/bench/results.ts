import type { Result } from '../../src/bench/engine/reports/result.ts';

/** Text that breaks out of XML, HTML, TAP and terminals where it is not escaped. */
export const HOSTILE = `</script><img src=x onerror=alert(1)>"'&]]>--># SKIP \u0000\u001b[31m\u202e\ud800 end\n  ...\nnot ok 9`;

/** A result of each outcome, with hostile words wherever they may come from outside. */
export function resultsOf(hostile = HOSTILE): Result[] {
  const base: Result = {
    scenario: { name: 'A plain one', file: 'plain.yaml', about: 'Nothing about it.' },
    target: 'emulated',
    seed: 7,
    outcome: 'passed',
    reason: '',
    where: undefined,
    tookMs: 12.3,
    entries: [],
    entriesOmitted: 0,
    latencies: new Map([['push', [1, 2, 3, 4, 100]]]),
  };
  const picture = Buffer.from(
    'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==',
    'base64',
  );
  return [
    base,
    {
      ...base,
      scenario: { name: hostile, file: 'hostile.yaml', about: hostile },
      outcome: 'failed',
      reason: hostile,
      where: 'hostile.yaml:3',
      tookMs: 65_000,
      entries: [
        { atMs: 0, kind: 'step', title: hostile, detail: { path: 'steps.0' } },
        { atMs: 5, kind: 'call', title: 'send-qr', detail: { [hostile]: hostile } },
        { atMs: 5, kind: 'service', title: hostile, detail: hostile },
        { atMs: 5, kind: 'message', title: hostile, detail: { type: hostile } },
        { atMs: 5, kind: 'status', title: hostile, detail: { state: hostile } },
        { atMs: 6, kind: 'screen', title: 'VVB000001', picture, qr: hostile },
        { atMs: 7, kind: 'screen', title: 'VVB000001', picture, qr: null },
        { atMs: 8, kind: 'problem', title: hostile },
      ],
      entriesOmitted: 3,
      latencies: new Map([[hostile, [5]]]),
    },
    {
      ...base,
      scenario: { name: 'A skipped one', file: 's.yaml', about: undefined },
      outcome: 'skipped',
      reason: 'cannot #1',
    },
    {
      ...base,
      scenario: { name: 'No box', file: 'm.yaml', about: undefined },
      outcome: 'missing',
      reason: 'nothing answers',
    },
  ];
}
