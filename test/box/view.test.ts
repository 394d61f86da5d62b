import { describe, expect, it } from 'vitest';
import { STAGES } from '../../src/device/box/machine.ts';
import { type BoxState, IDLE, type Stage } from '../../src/device/box/state.ts';
import { PROGRESS, SCENES, statusView, view } from '../../src/device/box/view.ts';
import type { Scene } from '../../src/device/scene.ts';
import { LINK } from './samples.ts';
import { boxIn, SAMPLES } from './stages.ts';

/** What makes a box stand there, beside everything that a later column asks for. */
const LINKED: Partial<BoxState> = { connection: 'registered', account: LINK };
const UNLINKED: Partial<BoxState> = { connection: 'registered', account: null };
const CONNECTING: Partial<BoxState> = { connection: 'connecting', account: undefined };
const ENROLMENT = { code: '7KQF-2M8C-4TZN', url: 'https://gateway.example/e', deadlineMs: 90_001, expiresAtMs: 1 };
const AT: Record<(typeof PROGRESS)[number], Partial<BoxState>> = {
  faulty: { ...LINKED, enrolment: ENROLMENT, faults: { display: undefined, storage: 'full' } },
  starting: { enrolment: ENROLMENT, account: LINK },
  enrolling: { ...CONNECTING, enrolment: ENROLMENT, account: LINK },
  connecting: CONNECTING,
  unlinked: UNLINKED,
  linked: LINKED,
};

type Kind = Scene['kind'];
const all = (kind: Kind): Kind[] => PROGRESS.map(() => kind);
const EXPECTED: Record<Stage['kind'], Kind[]> = {
  idle: ['fault', 'starting', 'enrol', 'connecting', 'unlinked', 'idle'],
  order: all('payment'),
  paid: all('paid'),
  ended: all('expired'),
  'too-dense': all('too-dense'),
  account: all('account'),
  history: all('history'),
  repeat: all('repeat'),
};
const STATUS: Partial<Record<Kind, string>> = {
  ...{ payment: 'showing', connecting: 'registering', enrol: 'registering', certificate: 'unlinked' },
  ...{ cancelled: 'idle', account: 'idle', history: 'idle', repeat: 'idle', 'too-dense': 'idle' },
};

const CELLS = STAGES.flatMap((stage) =>
  PROGRESS.map((progress, column) => ({ stage, progress, kind: EXPECTED[stage][column] ?? 'blank' })),
);

describe('the screen of each stage', () => {
  it('the table of screens has a row for each stage, and a cell for each progress of the box', () => {
    expect(Object.keys(SCENES).toSorted()).toEqual(STAGES.toSorted());
    for (const [stage, row] of Object.entries(SCENES)) expect(row, stage).toHaveLength(PROGRESS.length);
  });

  it.each(CELLS)('the screen is $kind in stage $stage while the box is $progress', ({ stage, progress, kind }) => {
    const state = boxIn(SAMPLES[stage], AT[progress]);
    const scene = view(state);
    expect(scene.kind).toBe(kind);
    const online = AT[progress].connection === 'registered';
    expect('online' in scene ? scene.online : online).toBe(online);
    expect(statusView(state).state).toBe(STATUS[kind] ?? kind);
    const dark = { ...state, faults: { ...state.faults, display: 'unplugged' } };
    expect([view(dark), statusView(dark).state]).toEqual([scene, 'fault']);
  });

  it('a screen names first what a person must fix: the refusal of the gateway, then the disk', () => {
    const refusal = { code: 'BOX_DISABLED', reason: 'switched off' } as const;
    const code = (change: Partial<BoxState>) => view(boxIn(IDLE, { ...AT.faulty, ...change }));
    expect(code({ refusal })).toMatchObject({ kind: 'fault', code: 'BOX_DISABLED' });
    expect(code({})).toMatchObject({ kind: 'fault', code: 'STORAGE_FAULT' });
  });

  it('a screen shows a certificate or a static QR only while the box would receive its payment', () => {
    const pictures = { certificate: 'certificate', staticQr: 'static' };
    const scenes = (['registered', 'connecting'] as const).flatMap((connection) =>
      [null, LINK].map((account) => view(boxIn(IDLE, { connection, account, pictures }))),
    );
    expect(scenes.map(({ kind }) => kind)).toEqual(['certificate', 'idle', 'unlinked', 'idle']);
    expect(scenes.map((it) => 'qrCode' in it)).toEqual([false, true, false, false]);
  });

  it('every screen has the mark of a sandbox, unless the box is configured otherwise', () => {
    for (const { stage, progress } of CELLS) {
      const state = boxIn(SAMPLES[stage], { ...AT[progress], sandboxMark: true });
      expect(view(state)).toHaveProperty('sandbox', true);
      expect(view({ ...state, config: { ...state.config, sandboxMark: false } })).not.toHaveProperty('sandbox');
    }
  });
});
