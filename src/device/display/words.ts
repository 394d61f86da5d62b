import { vietnamTime } from '../../lib/vietnam-time.ts';
import type { Holder, Scene } from '../scene.ts';
import { cleanText } from './charset.ts';

/** The meaning of a screen. Layouts turn it into colours. */
export type Tone = 'calm' | 'ready' | 'good' | 'ended' | 'bad';
export type IconName = 'dots' | 'link' | 'dong' | 'tick' | 'clock' | 'cross' | 'alert';

export interface Fact {
  label: string;
  value: string;
}

/** The texts of a scene in reading order, without characters that a screen cannot draw. */
export interface Page {
  tone: Tone;
  icon: IconName;
  title: string;
  /** The title for a narrow screen. */
  shortTitle: string;
  /**
   * Without the title the amount would mean something else. So a small screen leaves out everything before the title.
   */
  needsTitle: boolean;
  amount: string | undefined;
  /** The difference. It is set if the payment has another amount than its order. */
  due: Due | undefined;
  /** A code that a person types elsewhere, in groups separated by hyphens. */
  code: string | undefined;
  /** The facts, the most important first. */
  facts: Fact[];
  /** True if the facts are of one kind. Then the screen shows all labels or none. */
  list: boolean;
  /** The countdown: whole seconds as `m:ss`, or minutes as `9 phút`. */
  timeLeft: string | undefined;
  /** The next step for a person. */
  hint: string | undefined;
  /** True if the hint belongs to the facts, and comes after them. */
  hintLast: boolean;
  badge: Badge | undefined;
  /** A word that every screen of a sandbox carries. */
  mark: string | undefined;
}

/** A problem of the connection. */
export interface Badge {
  text: string;
  /** The text for a narrow panel. */
  short: string;
}

/** An amount that is missing or too much. */
export interface Due {
  /** The text, for example `Còn thiếu 20.000 ₫`. */
  text: string;
  /** A shorter text, for example `Thiếu 20.000 ₫`. */
  short: string;
  /** The word and the amount of `short`, for a screen without room for both in one line. */
  parts: readonly [string, string];
}

export const OFFLINE: Badge = { text: 'Mất kết nối', short: 'Mất mạng' };
export const PLAIN_LINK: Badge = { text: 'Kết nối không mã hóa', short: 'Không mã hóa' };
/** Every screen has this word if the gateway's payments are no money. */
const SANDBOX = 'SANDBOX';
export const TIME_LEFT = 'Còn lại';
/** These words begin the title of a payment that is shown again. */
export const REPEATED = 'Nhắc lại';
export const PROBLEM = 'Vấn đề';
export const DEVICE_CODE = 'Mã thiết bị';
/** The screen shows this instead of a QR that does not fit scannably. */
export const NO_ROOM_FOR_QR = 'Màn hình quá nhỏ cho mã QR';

/** A title, with a shorter one for narrow screens. */
interface Heading {
  tone: Tone;
  icon: IconName;
  title: string;
  shortTitle?: string;
}

const HEADINGS: Readonly<Record<Scene['kind'], Heading>> = {
  starting: { tone: 'calm', icon: 'dots', title: 'Đang khởi động' },
  connecting: { tone: 'calm', icon: 'dots', title: 'Đang kết nối…' },
  enrol: { tone: 'calm', icon: 'link', title: 'Kích hoạt thiết bị', shortTitle: 'Kích hoạt' },
  setup: { tone: 'bad', icon: 'alert', title: 'Chưa cài đặt xong', shortTitle: 'Cài đặt' },
  certificate: { tone: 'calm', icon: 'link', title: 'Liên kết tài khoản', shortTitle: 'Liên kết' },
  unlinked: { tone: 'calm', icon: 'link', title: 'Chưa liên kết tài khoản', shortTitle: 'Chưa liên kết' },
  idle: { tone: 'ready', icon: 'dong', title: 'Sẵn sàng thanh toán', shortTitle: 'Sẵn sàng' },
  payment: { tone: 'ready', icon: 'dong', title: 'Quét mã để thanh toán' },
  paid: { tone: 'good', icon: 'tick', title: 'Đã nhận' },
  repeat: { tone: 'calm', icon: 'clock', title: REPEATED },
  expired: { tone: 'ended', icon: 'clock', title: 'Mã QR đã hết hạn' },
  cancelled: { tone: 'ended', icon: 'cross', title: 'Đã hủy thanh toán' },
  account: { tone: 'ended', icon: 'alert', title: 'Tài khoản nhận tiền mới', shortTitle: 'Tài khoản mới' },
  'too-dense': { tone: 'bad', icon: 'alert', title: NO_ROOM_FOR_QR, shortTitle: 'Không có QR' },
  history: { tone: 'calm', icon: 'clock', title: 'Giao dịch gần đây', shortTitle: 'Gần đây' },
  fault: { tone: 'bad', icon: 'alert', title: 'Lỗi' },
  blank: { tone: 'calm', icon: 'dots', title: '' },
};
/** The hint says why the box does not announce a repetition, if it does not. */
const REPEAT_HINTS = {
  said: 'Đã nhận trước đó, không phải giao dịch mới',
  old: 'Đã cũ, không đọc lại',
  undated: 'Chưa rõ giờ, không đọc lại',
} as const;
/** The title of a payment in part. Nobody may mistake it for a full payment. */
const PAID_IN_PART: Heading = { tone: 'ended', icon: 'alert', title: 'Đã nhận một phần', shortTitle: 'Đã nhận' };

/** Returns the Vietnamese texts of `scene`. A blank scene has none. */
export function pageOf(scene: Scene): Page {
  const { tone, icon, title, shortTitle = title } = headingOf(scene);
  const { amount, due, code, facts = [], list = false, timeLeft, hint, hintLast = false } = detailsOf(scene);
  return {
    tone,
    icon,
    title,
    shortTitle,
    needsTitle: scene.kind === 'repeat',
    amount,
    due,
    code: cleanText(code ?? '') || undefined,
    facts: facts.map(({ label, value }) => ({ label, value: cleanText(value) })).filter(({ value }) => value !== ''),
    list,
    timeLeft,
    hint: cleanText(hint ?? '') || undefined,
    hintLast,
    badge: badgeOf(scene),
    mark: 'sandbox' in scene ? SANDBOX : undefined,
  };
}

function headingOf(scene: Scene): Heading {
  if (isPaidInPart(scene)) return PAID_IN_PART;
  const heading = HEADINGS[scene.kind];
  if (scene.kind !== 'repeat') return heading;
  const time = formatTime(scene.paidAtMs);
  return { ...heading, title: `${REPEATED} lúc ${time}`, shortTitle: `${REPEATED} ${time.slice(0, 5)}` };
}

/** Shortens the short title of a repetition to `lại 09:05`, for a screen that has no room for more. */
export function withoutFirstWord(text: string): string {
  return text.split(' ').slice(1).join(' ');
}

function isPaidInPart(scene: Scene): boolean {
  return scene.kind === 'paid' && scene.due !== undefined && scene.due.paid < scene.due.amount;
}

/** Returns the badge of a scene. Offline comes first, because nobody can read the traffic of a missing connection. */
function badgeOf(scene: Scene): Badge | undefined {
  if ('online' in scene && !scene.online) return OFFLINE;
  return 'plainLink' in scene && scene.plainLink ? PLAIN_LINK : undefined;
}

function detailsOf(scene: Scene): Partial<Page> {
  switch (scene.kind) {
    case 'starting':
      return { facts: [{ label: 'Phiên bản', value: scene.version }] };
    case 'connecting':
      return { facts: codes(scene) };
    case 'enrol': {
      const hint = 'Nhập mã này tại trang quản trị của máy chủ';
      return { code: scene.code, facts: codes(scene), timeLeft: `${scene.minutesLeft} phút`, hint };
    }
    case 'setup': {
      const facts = [{ label: PROBLEM, value: scene.problem }, ...codes(scene)];
      return { facts, hint: scene.action, hintLast: true };
    }
    case 'certificate':
      return {
        facts: codes(scene),
        hint: 'Quét mã này bằng ứng dụng VietQR của cửa hàng để liên kết tài khoản nhận tiền',
      };
    case 'unlinked':
      return { facts: codes(scene), hint: 'Liên kết tài khoản nhận tiền với mã thiết bị này để bắt đầu' };
    case 'idle':
      return { facts: holderFacts(scene.holder) };
    case 'payment':
      return { ...orderDetails(scene, scene.holder), timeLeft: formatTimeLeft(scene.secondsLeft) };
    case 'paid':
      return { ...orderDetails(scene, scene.holder), due: scene.due && dueOf(scene.due) };
    case 'repeat': {
      const hint = REPEAT_HINTS[scene.silent ?? 'said'];
      const hintLast = scene.silent === undefined;
      return { ...orderDetails(scene, null), due: scene.due && dueOf(scene.due), hint, hintLast };
    }
    case 'too-dense':
      return orderDetails(scene, scene.holder);
    case 'expired':
    case 'cancelled':
      return orderDetails(scene, null);
    case 'account': {
      const hint = `Thay cho ${accountOf(scene.previous)}. Nếu không phải bạn đổi, hãy gọi hỗ trợ`;
      return { facts: holderFacts(scene.holder), hint, hintLast: true };
    }
    case 'history': {
      const facts = scene.payments.map(({ amount, content, paidAtMs }) => ({
        label: formatTime(paidAtMs),
        value: `${formatAmount(amount)}  ${content}`,
      }));
      return { facts, list: true };
    }
    case 'fault':
      return { facts: [{ label: 'Mã lỗi', value: scene.code }], hint: scene.action };
    case 'blank':
      return {};
  }
}

function orderDetails({ amount, content }: { amount: number; content: string }, holder: Holder | null): Partial<Page> {
  const facts = [{ label: 'Nội dung', value: content }, ...(holder === null ? [] : holderFacts(holder))];
  return { amount: formatAmount(amount), facts };
}

function dueOf({ amount, paid }: { amount: number; paid: number }): Due {
  const [word, short] = paid > amount ? ['Thừa', 'Thừa'] : ['Còn thiếu', 'Thiếu'];
  const difference = formatAmount(Math.abs(amount - paid));
  return { text: `${word} ${difference}`, short: `${short} ${difference}`, parts: [short, difference] };
}

function codes(scene: { terminalCode: string | null; serialNumber: string | null }): Fact[] {
  return [
    { label: DEVICE_CODE, value: scene.terminalCode ?? '' },
    { label: 'Số sê-ri', value: scene.serialNumber ?? '' },
  ];
}

function holderFacts(holder: Holder): Fact[] {
  return [
    { label: 'Người nhận', value: holder.userBankName },
    { label: 'Tài khoản', value: accountOf(holder) },
  ];
}

function accountOf({ bankCode, bankAccount }: Holder): string {
  return `${bankCode} • ${bankAccount}`;
}

/** Formats a time in Vietnam as `09:05 02/01`: hours, minutes, day and month. */
export function formatTime(wallMs: number): string {
  const [date = '', time = ''] = vietnamTime(wallMs).split(' ');
  const [, month, day] = date.split('-');
  return `${time.slice(0, 5)} ${day}/${month}`;
}

/** Formats whole đồng as `50.000 ₫`, with dots between thousands. */
export function formatAmount(amount: number): string {
  return `${String(Math.trunc(amount)).replaceAll(/\B(?=(\d{3})+$)/g, '.')} ₫`;
}

/** Formats whole seconds as `m:ss`. */
export function formatTimeLeft(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
}
