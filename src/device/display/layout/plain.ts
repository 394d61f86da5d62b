import type { Scene } from '../../scene.ts';
import { withoutAccents } from '../charset.ts';
import type { Cell, CharacterFrame, CharacterSurface } from '../contract.ts';
import { type Badge, DEVICE_CODE, type Due, type Page, PROBLEM, pageOf, REPEATED, withoutFirstWord } from '../words.ts';
import { wrap } from './wrap.ts';

const INK = 0x17233a;
const PAPER = 0xffffff;

/** A page with fewer rows has no title. */
const TITLED_ROWS_MIN = 4;

/** The state of an order, if a title has no room. */
const STATES = {
  payment: 'Chờ thanh toán',
  paid: 'Đã nhận',
  repeat: REPEATED,
  expired: 'Hết hạn',
  cancelled: 'Đã hủy',
  'too-dense': 'Không có mã QR',
} as const;
type OrderKind = keyof typeof STATES;

/**
 * Lays out a scene for a customer display of few rows of ASCII characters, which shows no QR. An order has first its
 * amount, then its content, then its state. The page always fills the surface.
 */
export function layoutPlain(scene: Scene, surface: CharacterSurface): CharacterFrame {
  const { columns, rows } = surface;
  const page = plainPage(pageOf(scene));
  const order = scene.kind in STATES ? orderLines(page, scene.kind as OrderKind, columns, rows) : [];
  const text =
    order.length > 0
      ? marked(page, order, -1, surface)
      : marked(page, messageLines(page, scene.kind, columns, rows), cutOf(page, scene.kind, rows), surface);
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
    shortTitle: withoutAccents(page.shortTitle),
    amount: plain(page.amount),
    due: page.due && { ...plainBadge(page.due), parts: [withoutAccents(page.due.parts[0]), ''] },
    hint: plain(page.hint),
    badge: page.badge && plainBadge(page.badge),
    facts: page.facts.map(({ label, value }) => ({ label, value: withoutAccents(value) })),
  };
}

function plainBadge({ text, short }: Badge): Badge {
  return { text: withoutAccents(text), short: withoutAccents(short) };
}

/**
 * Adds the mark of a sandbox: after the first line, or in the last blank row, or before the line `cut`. The layout may
 * cut the end of that line, a title or the last line of an order. It never cuts a missing amount or the codes of an
 * enrolment, and a display of one row has the mark only after its line.
 */
function marked(
  { mark, due }: Page,
  lines: readonly string[],
  cut: number | undefined,
  { columns, rows }: CharacterSurface,
): string[] {
  const page = Array.from({ length: rows }, (_, row) => lines[row] ?? '');
  if (mark === undefined) return page;
  const [first = '', ...others] = page;
  if (first.length + 1 + mark.length <= columns) return [spread(first, mark, columns), ...others];
  const blank = page.lastIndexOf('');
  if (blank >= 0) return page.with(blank, mark);
  const line = cut === undefined || rows === 1 || due !== undefined ? undefined : page.at(cut);
  if (cut === undefined || line === undefined) return page;
  return page.with(cut, linesOf(`${mark} ${line}`, columns, 1)[0] ?? mark);
}

/** Returns the lines of an order; none if the amount does not fit, because a cut one would be wrong. */
function orderLines(page: Page, kind: OrderKind, columns: number, rows: number): string[] {
  const { amount = '', timeLeft = '', badge, due } = page;
  if (amount.length > columns) return [];
  const content = page.facts.find(({ label }) => label === 'Nội dung')?.value ?? '';
  const state = withoutAccents(STATES[kind]);
  const lost = badge?.text ?? '';
  const lostShort = badge?.short ?? '';
  const difference = due === undefined ? [] : [differenceIn(due, columns)];
  if (page.needsTitle) return repeatLines(page, [amount, ...difference], content, columns, rows);
  if (rows >= 3) {
    const free = rows - 2 - difference.length;
    const body = [...difference, ...(free > 0 ? linesOf(content, columns, free) : [])];
    const last = kind === 'payment' ? spread(lost || state, timeLeft, columns) : spread(state, lostShort, columns);
    return [amount, ...body, ...Array<string>(rows - 2 - body.length).fill(''), last];
  }
  if (due !== undefined) return [spread(amount, lostShort, columns), ...difference].slice(0, rows);
  const note = kind === 'payment' ? timeLeft : state;
  const first = spread(amount, note, columns);
  const said = first.length > amount.length;
  const second = [said ? '' : note, said && page.mark === undefined ? lost : lostShort, content]
    .filter((part) => part !== '')
    .join(' ');
  return [first, ...linesOf(second, columns, 1)].slice(0, rows);
}

/**
 * Returns the lines of a repetition. The amount and the word for a repetition come first, because an amount alone would
 * look like a new payment.
 */
function repeatLines(
  { title, shortTitle, badge, hint = '', hintLast }: Page,
  [amount = '', ...difference]: readonly string[],
  content: string,
  columns: number,
  rows: number,
): string[] {
  if (rows === 1) return [repeatIn(amount, shortTitle, columns)];
  const lost = badge?.short ?? '';
  // The reason for the silence comes first.
  const why = hintLast ? '' : hint;
  if (rows === 2) {
    const first = spread(amount, lost, columns);
    const rest = [shortTitle, first === amount ? lost : '', ...difference, why, content].filter((part) => part !== '');
    return [first, ...linesOf(rest.join(' '), columns, 1)];
  }
  const room = badge === undefined ? rows : rows - 1;
  const known = [amount, title.length <= columns ? title : shortTitle, ...difference];
  const lines = [...known, ...(why === '' ? [] : linesOf(why, columns, 1))].slice(0, room);
  if (lines.length < room) lines.push(...linesOf(content, columns, room - lines.length));
  if (badge === undefined) return lines;
  return [...lines, ...Array<string>(room - lines.length).fill(''), lineFor(badge, columns)];
}

/** Returns the words for a repetition in one row, with the amount if it fits. */
function repeatIn(amount: string, state: string, columns: number): string {
  const fits = [state, withoutFirstWord(state), withoutAccents(REPEATED)].find(
    (it) => amount.length + 1 + it.length <= columns,
  );
  return fits === undefined ? state.slice(0, columns) : spread(amount, fits, columns);
}

/** Returns the missing amount, or the word for it alone, because a cut amount would be wrong. */
function differenceIn({ text, short, parts: [word] }: Due, columns: number): string {
  return [text, short].find((it) => it.length <= columns) ?? word;
}

/** Returns the title, then one line per fact. The first facts get the free rows too. */
function messageLines(page: Page, kind: Scene['kind'], columns: number, rows: number): string[] {
  const title = page.title.length <= columns ? page.title : page.shortTitle;
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

/** Returns the row of a message whose end the layout may cut: its title, if it has one. */
function cutOf({ code }: Page, kind: Scene['kind'], rows: number): number | undefined {
  if (kind === 'fault') return -1;
  return code === undefined || rows >= TITLED_ROWS_MIN ? 0 : undefined;
}

/** Returns only the text that must be read completely and, if there is room, its subject. */
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

/** Returns one text at the left and one at the right, or only the left one if both do not fit with a blank between. */
function spread(left: string, right: string, columns: number): string {
  const gap = columns - left.length - right.length;
  if (right === '' || gap < 1) return left.slice(0, columns);
  return `${left}${' '.repeat(gap)}${right}`;
}
