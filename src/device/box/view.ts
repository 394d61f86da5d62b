import type { Code } from '../../protocol/codes.ts';
import type { LinkedAccount } from '../../protocol/messages.ts';
import type { StatusState } from '../../protocol/statuses.ts';
import type { BlankScene, Scene, SetupScene } from '../scene.ts';
import { minutesLeft } from './draft.ts';
import type { Payment } from './entry.ts';
import { payeeOf } from './push.ts';
import { activeOrder, type BoxState, type Enrolment, type Stage, type StageOf } from './state.ts';

/** Gives the screen's advice for each fault. */
const ACTIONS: Partial<Record<Code, string>> = {
  NOT_REGISTERED: 'Kiểm tra mã thiết bị và mật khẩu trong cấu hình',
  BOX_DISABLED: 'Thiết bị đang bị tắt trên hệ thống. Khi được bật, máy tự hoạt động lại',
  SUPERSEDED: 'Thiết bị khác đang dùng mã này. Tắt nó, máy này sẽ tự kết nối lại',
  STORAGE_FAULT: 'Bộ nhớ lỗi. Kiểm tra thẻ nhớ rồi khởi động lại',
};
/** The folder's name or its owner is wrong. The card is not the cause. */
const NO_FOLDER = 'Không tạo được thư mục dataDir. Sửa dataDir trong cấu hình';
const CALL_FOR_HELP = 'Liên hệ bộ phận hỗ trợ';

type BoxScene = Exclude<Scene, BlankScene | SetupScene>;

/**
 * How far a box has come with its gateway. A stage that something has keeps its screen whatever this is; while nothing
 * has the screen, this decides.
 */
export type Progress =
  /** A fault prevents the next payment. A dead display cannot show itself: `/status` names it. */
  | { kind: 'faulty'; code: Code }
  | { kind: 'starting' }
  | { kind: 'enrolling'; enrolment: Enrolment }
  | { kind: 'connecting' }
  | { kind: 'unlinked' }
  | { kind: 'linked'; account: LinkedAccount };

type Cell<K extends Stage['kind'], P extends Progress['kind']> = (
  state: BoxState,
  held: StageOf<K>,
  progress: Progress & { kind: P },
) => BoxScene;

export const PROGRESS = ['faulty', 'starting', 'enrolling', 'connecting', 'unlinked', 'linked'] as const;

type Row<K extends Stage['kind'], All extends readonly Progress['kind'][] = typeof PROGRESS> = {
  readonly [I in keyof All]: Cell<K, All[I]>;
};

/** The screen of each stage that `machine.ts` moves to. */
// biome-ignore format: a table is read by its columns
export const SCENES: { readonly [K in Stage['kind']]: Row<K> } = {
  //            faulty    starting  enrolling connecting  unlinked  linked
  'idle':      [fault,    starting, enrol,    connecting, unlinked, idle],
  'order':     [payment,  payment,  payment,  payment,    payment,  payment],
  'paid':      [paid,     paid,     paid,     paid,       paid,     paid],
  'ended':     [ended,    ended,    ended,    ended,      ended,    ended],
  'too-dense': [tooDense, tooDense, tooDense, tooDense,   tooDense, tooDense],
  'account':   [account,  account,  account,  account,    account,  account],
  'history':   [history,  history,  history,  history,    history,  history],
  'repeat':    [repeat,   repeat,   repeat,   repeat,     repeat,   repeat],
};

/** Returns the screen of a state: the screen is derived, never commanded. */
export function view(state: BoxState): BoxScene {
  const progress = progressOf(state);
  const cell = SCENES[state.stage.kind][PROGRESS.indexOf(progress.kind)] as (...given: unknown[]) => BoxScene;
  const scene = cell(state, state.stage, progress);
  return state.sandboxMark && state.config.sandboxMark ? { ...scene, sandbox: true } : scene;
}

function progressOf({ refusal, faults, connection, enrolment, account }: BoxState): Progress {
  if (refusal !== undefined) return { kind: 'faulty', code: refusal.code };
  if (faults.storage !== undefined) return { kind: 'faulty', code: 'STORAGE_FAULT' };
  if (connection === 'none') return { kind: 'starting' };
  if (enrolment !== undefined) return { kind: 'enrolling', enrolment };
  if (account === undefined) return { kind: 'connecting' };
  return account === null ? { kind: 'unlinked' } : { kind: 'linked', account };
}

function isOnline({ connection }: BoxState): boolean {
  return connection === 'registered';
}

function fault(state: BoxState, _stage: Stage, { code }: { code: Code }): BoxScene {
  const isNoFolder = code === 'STORAGE_FAULT' && /, mkdir '/.test(state.faults.storage ?? '');
  const action = isNoFolder ? NO_FOLDER : (ACTIONS[code] ?? CALL_FOR_HELP);
  return { kind: 'fault', code, action, online: isOnline(state) };
}

function starting({ config }: BoxState): BoxScene {
  return { kind: 'starting', version: config.version };
}

function enrol({ config, nowMs }: BoxState, _stage: Stage, { enrolment }: { enrolment: Enrolment }): BoxScene {
  const { code, url } = enrolment;
  const { terminalCode, serialNumber } = config;
  return { kind: 'enrol', code, url, terminalCode, serialNumber, minutesLeft: minutesLeft(enrolment, nowMs) };
}

function connecting({ config: { terminalCode, serialNumber, plainLink } }: BoxState): BoxScene {
  return { kind: 'connecting', terminalCode, serialNumber, plainLink };
}

/** Returns the screen without an account. Without a connection the box would not receive the link that its certificate leads to. */
function unlinked(state: BoxState): BoxScene {
  const { terminalCode, serialNumber, plainLink } = state.config;
  const { certificate } = state.pictures;
  const online = isOnline(state);
  const waiting = { terminalCode, serialNumber, plainLink, online };
  return online && certificate !== undefined
    ? { kind: 'certificate', certificate, ...waiting }
    : { kind: 'unlinked', ...waiting };
}

/** Returns the screen without an order. Without a connection the box would not receive the notice of a payment by its static QR. */
function idle(state: BoxState, _stage: Stage, { account: holder }: { account: LinkedAccount }): BoxScene {
  const { terminalCode, plainLink } = state.config;
  const { staticQr } = state.pictures;
  const online = isOnline(state);
  const scene = { kind: 'idle', holder, terminalCode, plainLink, online } as const;
  return online && staticQr !== undefined ? { ...scene, qrCode: staticQr } : scene;
}

function payment(state: BoxState, { active: { order, deadlineMs } }: StageOf<'order'>): BoxScene {
  const { pushId, qrCode, amount, content } = order;
  const secondsLeft = Math.max(0, Math.ceil((deadlineMs - state.nowMs) / 1000));
  const holder = payeeOf(order);
  return { kind: 'payment', pushId, qrCode, amount, content, holder, secondsLeft, online: isOnline(state) };
}

function paid(state: BoxState, { payment, holder }: StageOf<'paid'>): BoxScene {
  const { transactionId, amount, content, due } = payment;
  const scene = { kind: 'paid', transactionId, amount, content, holder, online: isOnline(state) } as const;
  return due === null ? scene : { ...scene, due };
}

function ended(state: BoxState, { how, order: { amount, content } }: StageOf<'ended'>): BoxScene {
  return { kind: how, amount, content, online: isOnline(state) };
}

function tooDense(state: BoxState, { order }: StageOf<'too-dense'>): BoxScene {
  const { amount, content } = order;
  return { kind: 'too-dense', amount, content, holder: payeeOf(order), online: isOnline(state) };
}

function account(state: BoxState, { holder, previous }: StageOf<'account'>): BoxScene {
  return { kind: 'account', holder, previous, online: isOnline(state) };
}

function history(state: BoxState): BoxScene {
  const payments = state.recentPayments.map(({ amount, content, paidAtMs }) => ({ amount, content, paidAtMs }));
  return { kind: 'history', payments, online: isOnline(state) };
}

function repeat(state: BoxState, { payment, silent }: StageOf<'repeat'>): BoxScene {
  const { transactionId, amount, content, due, paidAtMs } = payment;
  const scene = { kind: 'repeat', transactionId, amount, content, paidAtMs, online: isOnline(state) } as const;
  return { ...scene, ...(due === null ? {} : { due }), ...(silent === undefined ? {} : { silent }) };
}

export interface StatusView {
  terminalCode: string;
  serialNumber: string;
  state: StatusState;
  online: boolean;
  order: { orderId: string; amount: number; content: string; qrCode: string; expiresAt: string } | null;
  lastPayment: (Omit<Payment, 'paidAtMs'> & { paidAt: string }) | null;
  fault: { code: string; reason: string } | null;
  /** The code by which a person can enrol this box, while the box waits for that. */
  enrolment: { code: string; url: string; expiresAt: string } | null;
}

/** Returns the part of `/status` that follows from the box's state. Times are ISO 8601 in UTC. */
export function statusView(state: BoxState): StatusView {
  const { config, enrolment } = state;
  const [lastPayment = null] = state.recentPayments;
  const active = activeOrder(state.stage);
  const order = state.stage.kind === 'order' ? active?.order : undefined;
  const reason = state.refusal ?? storageOrDisplay(state);
  return {
    terminalCode: config.terminalCode,
    serialNumber: config.serialNumber,
    state: state.faults.display === undefined ? STATUS[view(state).kind] : 'fault',
    online: state.connection === 'registered',
    order:
      order === undefined
        ? null
        : {
            orderId: order.orderId,
            amount: order.amount,
            content: order.content,
            qrCode: order.qrCode,
            expiresAt: new Date(order.expiresAtMs).toISOString(),
          },
    lastPayment:
      lastPayment === null
        ? null
        : {
            transactionId: lastPayment.transactionId,
            orderId: lastPayment.orderId,
            amount: lastPayment.amount,
            content: lastPayment.content,
            paidAt: new Date(lastPayment.paidAtMs).toISOString(),
            late: lastPayment.late,
            due: lastPayment.due,
          },
    fault: reason ?? null,
    enrolment: enrolment === undefined ? null : enrolmentView(enrolment),
  };
}

function enrolmentView({ code, url, expiresAtMs }: Enrolment): StatusView['enrolment'] {
  return { code, url, expiresAt: new Date(expiresAtMs).toISOString() };
}

function storageOrDisplay({ faults }: BoxState): { code: string; reason: string } | undefined {
  if (faults.display !== undefined) return { code: 'DISPLAY_FAULT', reason: faults.display };
  return faults.storage === undefined ? undefined : { code: 'STORAGE_FAULT', reason: faults.storage };
}

/** The state of `/status` that belongs to each screen. */
const STATUS: Readonly<Record<BoxScene['kind'], StatusState>> = {
  starting: 'starting',
  connecting: 'registering',
  enrol: 'registering',
  unlinked: 'unlinked',
  certificate: 'unlinked',
  idle: 'idle',
  payment: 'showing',
  paid: 'paid',
  expired: 'expired',
  cancelled: 'idle',
  account: 'idle',
  history: 'idle',
  repeat: 'idle',
  'too-dense': 'idle',
  fault: 'fault',
};
