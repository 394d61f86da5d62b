import type { Holder, Scene } from '../scene.ts';
import { cleanText } from './charset.ts';

/** What a screen means, which layouts turn into colours. */
export type Tone = 'calm' | 'ready' | 'good' | 'ended' | 'bad';
export type IconName = 'dots' | 'link' | 'dong' | 'tick' | 'clock' | 'cross' | 'alert';

export interface Fact {
  label: string;
  value: string;
}

/** The words of a scene, cleaned of anything that a screen cannot draw, in the order of reading. */
export interface Page {
  tone: Tone;
  icon: IconName;
  title: string;
  /** The same for a screen too narrow for it. */
  shortTitle: string;
  amount: string | undefined;
  /** What a person reads off and types elsewhere, in groups joined by hyphens. */
  code: string | undefined;
  /** What matters most first. */
  facts: Fact[];
  /** Whether the facts are of one kind, so that their labels are all said or none. */
  list: boolean;
  /** Whole seconds as `m:ss`, or minutes as `9 phút`, while they count. */
  timeLeft: string | undefined;
  /** What to do, or what happens next. */
  hint: string | undefined;
  /** Whether the hint is about the facts, and so is read after them. */
  hintLast: boolean;
  badge: Badge | undefined;
}

/** What is wrong with the connection. */
export interface Badge {
  text: string;
  /** The same for a panel too narrow for it. */
  short: string;
}

export const OFFLINE: Badge = { text: 'Mất kết nối', short: 'Mất mạng' };
export const PLAIN_LINK: Badge = { text: 'Kết nối không mã hóa', short: 'Không mã hóa' };
export const TIME_LEFT = 'Còn lại';
export const PROBLEM = 'Vấn đề';
export const DEVICE_CODE = 'Mã thiết bị';
/** Stands in for a QR that this screen cannot show scannably. */
export const NO_ROOM_FOR_QR = 'Màn hình quá nhỏ cho mã QR';

const BLANK = {
  amount: undefined,
  code: undefined,
  facts: [],
  list: false,
  timeLeft: undefined,
  hint: undefined,
  hintLast: false,
};

/** Titles for screens too narrow for the whole one. */
const SHORT_TITLES: Partial<Record<Scene['kind'], string>> = {
  unlinked: 'Chưa liên kết',
  idle: 'Sẵn sàng',
  enrol: 'Kích hoạt',
  setup: 'Cài đặt',
  account: 'Tài khoản mới',
  history: 'Gần đây',
  'too-dense': 'Không có QR',
};

/** The words of `scene` in Vietnamese; none of a blank one. */
export function pageOf(scene: Scene): Page {
  const page = wordsOf(scene);
  return {
    ...page,
    shortTitle: SHORT_TITLES[scene.kind] ?? page.title,
    code: cleanText(page.code ?? '') || undefined,
    hint: cleanText(page.hint ?? '') || undefined,
    facts: page.facts
      .map(({ label, value }) => ({ label, value: cleanText(value) }))
      .filter(({ value }) => value !== ''),
    badge: badgeOf(scene),
  };
}

/** Without any connection there is nothing to be read on the way. */
function badgeOf(scene: Scene): Badge | undefined {
  if ('online' in scene && !scene.online) return OFFLINE;
  return 'plainLink' in scene && scene.plainLink ? PLAIN_LINK : undefined;
}

function wordsOf(scene: Scene): Omit<Page, 'shortTitle' | 'badge'> {
  switch (scene.kind) {
    case 'starting':
      return {
        ...BLANK,
        tone: 'calm',
        icon: 'dots',
        title: 'Đang khởi động',
        facts: [{ label: 'Phiên bản', value: scene.version }],
      };
    case 'connecting':
      return { ...BLANK, tone: 'calm', icon: 'dots', title: 'Đang kết nối…', facts: codes(scene) };
    case 'enrol':
      return {
        ...BLANK,
        tone: 'calm',
        icon: 'link',
        title: 'Kích hoạt thiết bị',
        code: scene.code,
        facts: codes(scene),
        timeLeft: `${scene.minutesLeft} phút`,
        hint: 'Nhập mã này tại trang quản trị của máy chủ',
      };
    case 'setup':
      return {
        ...BLANK,
        tone: 'bad',
        icon: 'alert',
        title: 'Chưa cài đặt xong',
        facts: [{ label: PROBLEM, value: scene.problem }, ...codes(scene)],
        hint: scene.action,
        hintLast: true,
      };
    case 'unlinked':
      return {
        ...BLANK,
        tone: 'calm',
        icon: 'link',
        title: 'Chưa liên kết tài khoản',
        facts: codes(scene),
        hint: 'Liên kết tài khoản nhận tiền với mã thiết bị này để bắt đầu',
      };
    case 'idle':
      return { ...BLANK, tone: 'ready', icon: 'dong', title: 'Sẵn sàng thanh toán', facts: holderFacts(scene.holder) };
    case 'payment':
      return {
        ...BLANK,
        tone: 'ready',
        icon: 'dong',
        title: 'Quét mã để thanh toán',
        amount: formatAmount(scene.amount),
        facts: [{ label: 'Nội dung', value: scene.content }, ...holderFacts(scene.holder)],
        timeLeft: formatTimeLeft(scene.secondsLeft),
      };
    case 'paid':
      return {
        ...BLANK,
        tone: 'good',
        icon: 'tick',
        title: 'Đã nhận',
        amount: formatAmount(scene.amount),
        facts: [{ label: 'Nội dung', value: scene.content }, ...(scene.holder ? holderFacts(scene.holder) : [])],
      };
    case 'expired':
    case 'cancelled':
      return {
        ...BLANK,
        tone: 'ended',
        icon: scene.kind === 'expired' ? 'clock' : 'cross',
        title: scene.kind === 'expired' ? 'Mã QR đã hết hạn' : 'Đã hủy thanh toán',
        amount: formatAmount(scene.amount),
        facts: [{ label: 'Nội dung', value: scene.content }],
      };
    case 'account':
      return {
        ...BLANK,
        tone: 'ended',
        icon: 'alert',
        title: 'Tài khoản nhận tiền mới',
        facts: holderFacts(scene.holder),
        hint: `Thay cho ${accountOf(scene.previous)}. Nếu không phải bạn đổi, hãy gọi hỗ trợ`,
        hintLast: true,
      };
    case 'too-dense':
      return {
        ...BLANK,
        tone: 'bad',
        icon: 'alert',
        title: NO_ROOM_FOR_QR,
        amount: formatAmount(scene.amount),
        facts: [{ label: 'Nội dung', value: scene.content }, ...holderFacts(scene.holder)],
      };
    case 'history':
      return {
        ...BLANK,
        tone: 'calm',
        icon: 'clock',
        title: 'Giao dịch gần đây',
        list: true,
        facts: scene.payments.map(({ amount, content, paidAtMs }) => ({
          label: formatTime(paidAtMs),
          value: `${formatAmount(amount)}  ${content}`,
        })),
      };
    case 'fault':
      return {
        ...BLANK,
        tone: 'bad',
        icon: 'alert',
        title: 'Lỗi',
        facts: [{ label: 'Mã lỗi', value: scene.code }],
        hint: scene.action,
      };
    case 'blank':
      return { ...BLANK, tone: 'calm', icon: 'dots', title: '' };
  }
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

const VIETNAM_OFFSET_MS = 7 * 3_600_000;

/** `09:05 02/01`: hours, minutes, day and month in Vietnam, which has one time zone and no daylight saving. */
export function formatTime(wallMs: number): string {
  const [date = '', time = ''] = new Date(wallMs + VIETNAM_OFFSET_MS).toISOString().split('T');
  const [, month, day] = date.split('-');
  return `${time.slice(0, 5)} ${day}/${month}`;
}

/** `50.000 ₫`: whole đồng, grouped by dots as Vietnamese does. */
export function formatAmount(amount: number): string {
  return `${String(Math.trunc(amount)).replaceAll(/\B(?=(\d{3})+$)/g, '.')} ₫`;
}

/** `m:ss`, from whole seconds. */
export function formatTimeLeft(seconds: number): string {
  const whole = Math.max(0, Math.floor(seconds));
  return `${Math.floor(whole / 60)}:${String(whole % 60).padStart(2, '0')}`;
}
