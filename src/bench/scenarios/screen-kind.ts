import { pageOf, REPEATED } from '../../device/display/words.ts';
import type { Scene } from '../../device/scene.ts';

const HOLDER = { userBankName: '', bankAccount: '', bankCode: '' };
const BOX = { terminalCode: '', serialNumber: '' };
const ORDER = { amount: 0, content: '', online: true };

/** One scene of each kind, from which its title comes. */
const SCENES = {
  starting: { kind: 'starting', version: '' },
  connecting: { kind: 'connecting', ...BOX, plainLink: false },
  enrol: { kind: 'enrol', ...BOX, code: '', url: '', minutesLeft: 1 },
  setup: { kind: 'setup', ...BOX, problem: '', action: '' },
  certificate: { kind: 'certificate', ...BOX, certificate: '', plainLink: false, online: true },
  unlinked: { kind: 'unlinked', ...BOX, plainLink: false, online: true },
  idle: { kind: 'idle', holder: HOLDER, terminalCode: '', plainLink: false, online: true },
  payment: { kind: 'payment', ...ORDER, pushId: '', qrCode: '', holder: HOLDER, secondsLeft: 0 },
  paid: { kind: 'paid', ...ORDER, transactionId: '', holder: null },
  repeat: { kind: 'repeat', ...ORDER, transactionId: '', paidAtMs: 0 },
  expired: { kind: 'expired', ...ORDER },
  cancelled: { kind: 'cancelled', ...ORDER },
  account: { kind: 'account', holder: HOLDER, previous: HOLDER, online: true },
  'too-dense': { kind: 'too-dense', ...ORDER, holder: HOLDER },
  history: { kind: 'history', payments: [], online: true },
  fault: { kind: 'fault', code: '', action: '', online: true },
} as const satisfies Record<Exclude<Scene['kind'], 'blank'>, Scene>;

export type ScreenKind = keyof typeof SCENES;
export const SCREEN_KINDS = Object.keys(SCENES) as [ScreenKind, ...ScreenKind[]];

/**
 * Returns the kind of a screen from its text (`/screen.txt`), whose first line is the title. Undefined for screens of
 * another maker.
 */
export function screenKindOf(text: string): ScreenKind | undefined {
  const [title = ''] = text.split('\n', 1);
  // The title of a repetition varies, because it contains a time.
  if (title.startsWith(REPEATED)) return 'repeat';
  return SCREEN_KINDS.find((kind) => pageOf(SCENES[kind]).title === title);
}
