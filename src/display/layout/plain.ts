import type { Scene } from '../../scene.ts';
import { withoutAccents } from '../charset.ts';
import type { Cell, CharacterFrame, CharacterSurface } from '../contract.ts';
import { type Badge, DEVICE_CODE, type Page, PROBLEM, pageOf } from '../words.ts';
import { wrap } from './wrap.ts';

const INK = 0x17233a;
const PAPER = 0xffffff;

/** With fewer rows there is no title. */
const TITLED_ROWS_MIN = 4;

/** The state of an order, if a title has no room. */
const STATES = {
  payment: 'Chờ thanh toán',
  paid: 'Đã nhận',
  expired: 'Hết hạn',
  cancelled: 'Đã hủy',
  'too-dense': 'Không có mã QR',
} as const;
type OrderKind = keyof typeof STATES;

/**
 * Lays out a scene for a customer display of few rows of ASCII characters, which shows no QR. Of an order: first the
 * amount, then its content, then its state. It always fills the surface.
 */
export function layoutPlain(scene: Scene, { columns, rows }: CharacterSurface): CharacterFrame {
  const page = plainPage(pageOf(scene));
  const lines = scene.kind in STATES ? orderLines(page, scene.kind as OrderKind, columns, rows) : [];
  const text = lines.length > 0 ? lines : messageLines(page, scene.kind, columns, rows);
  const cells: Cell[] = Array.from({ length: rows }, (_, row) => (text[row] ?? '').padEnd(columns).slice(0, columns))
    .flatMap((line) => Array.from(line))
    .map((char) => ({ char, ink: INK, paper: PAPER }));
  return { kind: 'characters', columns, rows, cells };
}

function plainPage(page: Page): Page {
  const plain = (text: string | undefined) => (text === undefined ? undefined : withoutAccents(text));
  return {
    ...page,
    title: withoutAccents(page.title),
    amount: plain(page.amount),
    hint: plain(page.hint),
    badge: page.badge && { text: withoutAccents(page.badge.text), short: withoutAccents(page.badge.short) },
    facts: page.facts.map(({ label, value }) => ({ label, value: withoutAccents(value) })),
  };
}

/** No lines if the amount does not fit, because a cut one would be wrong. */
function orderLines(page: Page, kind: OrderKind, columns: number, rows: number): string[] {
  const { amount = '', timeLeft = '', badge } = page;
  if (amount.length > columns) return [];
  const content = page.facts.find(({ label }) => label === 'Nội dung')?.value ?? '';
  const state = withoutAccents(STATES[kind]);
  const lost = badge?.text ?? '';
  const lostShort = badge?.short ?? '';
  if (rows >= 3) {
    const body = linesOf(content, columns, rows - 2);
    const last = kind === 'payment' ? spread(lost || state, timeLeft, columns) : spread(state, lostShort, columns);
    return [amount, ...body, ...Array<string>(rows - 2 - body.length).fill(''), last];
  }
  const note = kind === 'payment' ? timeLeft : state;
  const first = spread(amount, note, columns);
  const said = first.length > amount.length;
  const second = [said ? '' : note, said ? lost : lostShort, content].filter((part) => part !== '').join(' ');
  return [first, ...linesOf(second, columns, 1)].slice(0, rows);
}

/** The title, then one line per fact; the first facts get the free rows too. */
function messageLines(page: Page, kind: Scene['kind'], columns: number, rows: number): string[] {
  const short = withoutAccents(page.shortTitle);
  const title = page.title.length <= columns ? page.title : short;
  const values = page.facts.map(({ value }) => value);
  const hint = page.hint === undefined ? [] : [page.hint];
  const body = fewLines(page, kind, title, rows) ?? [...(kind === 'fault' ? values : [title, ...values]), ...hint];
  const room = rows - (page.badge !== undefined && rows > 1 ? 1 : 0);
  const lines: string[] = [];
  for (const [index, text] of body.entries()) {
    const left = room - lines.length;
    if (left <= 0) break;
    lines.push(...linesOf(text, columns, Math.max(1, left - (body.length - 1 - index))));
  }
  if (page.badge === undefined || room === rows) return lines;
  return [...lines, ...Array<string>(room - lines.length).fill(''), lineFor(page.badge, columns)];
}

/** Only the text that must be read completely and, if there is room, its subject. */
function fewLines({ code, facts, hint = '' }: Page, kind: Scene['kind'], title: string, rows: number) {
  const factOf = (wanted: string) => facts.find(({ label }) => label === wanted)?.value ?? '';
  const vital = kind === 'setup' ? [factOf(PROBLEM)] : code === undefined ? undefined : [code, factOf(DEVICE_CODE)];
  return vital === undefined || rows < TITLED_ROWS_MIN ? vital : [title, ...vital, hint];
}

function linesOf(text: string, columns: number, linesMax: number): string[] {
  return wrap(text, columns, linesMax, (each) => each.length).lines.map(withoutAccents);
}

function lineFor({ text, short }: Badge, columns: number): string {
  return text.length <= columns ? text : short.slice(0, columns);
}

/** One text at the left, one at the right. Only the left one if both do not fit with a blank between. */
function spread(left: string, right: string, columns: number): string {
  const gap = columns - left.length - right.length;
  if (right === '' || gap < 1) return left.slice(0, columns);
  return `${left}${' '.repeat(gap)}${right}`;
}
