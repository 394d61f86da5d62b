import type { Code } from '../protocol/codes.ts';
import type { StatusState } from '../protocol/statuses.ts';
import type { BlankScene, Scene, SetupScene } from '../scene.ts';
import { minutesLeft } from './draft.ts';
import type { Order, Payment } from './entry.ts';
import { payeeOf } from './push.ts';
import { activeOrder, type BoxState, type Enrolment } from './state.ts';

/** The action for each fault, as the screen shows it. */
const ACTIONS: Partial<Record<Code, string>> = {
  NOT_REGISTERED: 'Kiểm tra mã thiết bị và mật khẩu trong cấu hình',
  BOX_DISABLED: 'Thiết bị đang bị tắt trên hệ thống. Khi được bật, máy tự hoạt động lại',
  SUPERSEDED: 'Thiết bị khác đang dùng mã này. Tắt nó, máy này sẽ tự kết nối lại',
  STORAGE_FAULT: 'Bộ nhớ lỗi. Kiểm tra thẻ nhớ rồi khởi động lại',
};
/** A folder that cannot be made is named wrongly, or its owner is: the card has nothing to do with it. */
const NO_FOLDER = 'Không tạo được thư mục dataDir. Sửa dataDir trong cấu hình';
const CALL_FOR_HELP = 'Liên hệ bộ phận hỗ trợ';

type BoxScene = Exclude<Scene, BlankScene | SetupScene>;

/** The picture of a state; the screen is derived, never commanded. */
export function view(state: BoxState): BoxScene {
  const scene = unmarked(state);
  return state.sandboxMark && state.config.sandboxMark ? { ...scene, sandbox: true } : scene;
}

function unmarked(state: BoxState): BoxScene {
  const online = state.connection === 'registered';
  const { stage } = state;
  switch (stage.kind) {
    case 'order': {
      const { pushId, qrCode, amount, content } = stage.active.order;
      const holder = payeeOf(stage.active.order);
      const secondsLeft = Math.max(0, Math.ceil((stage.active.deadlineMs - state.nowMs) / 1000));
      return { kind: 'payment', pushId, qrCode, amount, content, holder, secondsLeft, online };
    }
    case 'paid': {
      const { transactionId, amount, content, due } = stage.payment;
      const paid = { kind: 'paid', transactionId, amount, content, holder: stage.holder, online } as const;
      return due === null ? paid : { ...paid, due };
    }
    case 'ended':
      return { kind: stage.how, amount: stage.order.amount, content: stage.order.content, online };
    case 'too-dense': {
      const { amount, content } = stage.order;
      return { kind: 'too-dense', amount, content, holder: payeeOf(stage.order), online };
    }
    case 'account':
      return { kind: 'account', holder: stage.holder, previous: stage.previous, online };
    case 'history': {
      const payments = state.recentPayments.map(({ amount, content, paidAtMs }) => ({ amount, content, paidAtMs }));
      return { kind: 'history', payments, online };
    }
    case 'repeat': {
      const { transactionId, amount, content, due, paidAtMs } = stage.payment;
      const { silent } = stage;
      const repeat = { kind: 'repeat', transactionId, amount, content, paidAtMs, online } as const;
      return { ...repeat, ...(due === null ? {} : { due }), ...(silent === undefined ? {} : { silent }) };
    }
    case 'idle':
      return idleScene(state);
  }
}

/** While nothing has the screen: what is wrong, or how far the box has come with its gateway. */
function idleScene(state: BoxState): BoxScene {
  const { connection, account, config, enrolment, pictures } = state;
  const online = connection === 'registered';
  const fault = faultOf(state);
  if (fault !== undefined) return { kind: 'fault', code: fault, action: actionFor(fault, state), online };
  if (connection === 'none') return { kind: 'starting', version: config.version };
  const { terminalCode, serialNumber, plainLink } = config;
  if (enrolment !== undefined) {
    const { code, url } = enrolment;
    return { kind: 'enrol', code, url, terminalCode, serialNumber, minutesLeft: minutesLeft(enrolment, state.nowMs) };
  }
  if (account === undefined) return { kind: 'connecting', terminalCode, serialNumber, plainLink };
  // Without a connection the box would hear neither of the link nor of a payment that these QRs lead to.
  const { certificate, staticQr } = online ? pictures : {};
  if (account === null) {
    const unlinked = { terminalCode, serialNumber, plainLink, online };
    return certificate === undefined
      ? { kind: 'unlinked', ...unlinked }
      : { kind: 'certificate', certificate, ...unlinked };
  }
  const idle = { kind: 'idle', holder: account, terminalCode, plainLink, online } as const;
  return staticQr === undefined ? idle : { ...idle, qrCode: staticQr };
}

function actionFor(code: Code, { faults }: BoxState): string {
  if (code === 'STORAGE_FAULT' && /, mkdir '/.test(faults.storage ?? '')) return NO_FOLDER;
  return ACTIONS[code] ?? CALL_FOR_HELP;
}

/** A fault that prevents the next payment. A dead display cannot show itself: `/status` names it. */
function faultOf({ refusal, faults }: BoxState): Code | undefined {
  if (refusal !== undefined) return refusal.code;
  return faults.storage === undefined ? undefined : 'STORAGE_FAULT';
}

export interface StatusView {
  terminalCode: string;
  serialNumber: string;
  state: StatusState;
  online: boolean;
  order: (Pick<Order, 'orderId' | 'amount' | 'content' | 'qrCode'> & { expiresAt: string }) | null;
  lastPayment: (Omit<Payment, 'paidAtMs'> & { paidAt: string }) | null;
  fault: { code: string; reason: string } | null;
  /** The code by which this box can be enrolled, while it waits for that. */
  enrolment: (Pick<Enrolment, 'code' | 'url'> & { expiresAt: string }) | null;
}

/** The part of `/status` that follows from the box's mind. Times are ISO 8601 in UTC. */
export function statusView(state: BoxState): StatusView {
  const { config, enrolment } = state;
  const [lastPayment = null] = state.recentPayments;
  const active = activeOrder(state.stage);
  const order = state.stage.kind === 'order' ? active?.order : undefined;
  const reason = state.refusal ?? storageOrDisplay(state);
  return {
    terminalCode: config.terminalCode,
    serialNumber: config.serialNumber,
    state: statusState(state),
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

function statusState(state: BoxState): StatusState {
  const scene = view(state);
  if (state.faults.display !== undefined) return 'fault';
  switch (scene.kind) {
    case 'payment':
      return 'showing';
    case 'connecting':
    case 'enrol':
      return 'registering';
    case 'certificate':
      return 'unlinked';
    case 'cancelled':
    case 'account':
    case 'history':
    case 'repeat':
    case 'too-dense':
      return 'idle';
    default:
      return scene.kind;
  }
}
