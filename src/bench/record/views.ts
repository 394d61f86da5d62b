import { formatAmount } from '../../display/words.ts';
import type { UpOf } from '../../protocol/messages.ts';
import type { Ledger, Message, Show } from './ledger.ts';
import { type Line, line, note, variable } from './line.ts';
import type { Recording } from './recording.ts';
import type { Sight } from './sights.ts';
import type { Stand } from './stand.ts';

/** A report of a box, once, however often it was said. */
interface Report {
  atMs: number;
  box: string;
  body: UpOf<'shown'> | UpOf<'ended'> | UpOf<'paid'>;
  /** Whether an expectation of a screen speaks of it. */
  isTold: boolean;
}

/** A screen is seen a moment after it is reported; so much later it is another matter. */
const SEEN_LATE_MS = 500;
/** Screens on the way to others. */
const PASSING = ['starting', 'connecting', 'off'];
const NONE_BY_STEPS = ['account', 'enrol', 'setup', 'unlinked', 'fault', 'too-dense'];
/** How long the bench's own boxes hold a notice, unless a key takes it away. */
const HOLDS_MS: Readonly<Record<string, number>> = { paid: 10_000, expired: 5_000, cancelled: 5_000, history: 5_000 };
const SOON_MS = 1_000;
/** How an order has ended when a screen follows it at once. */
const HOW_SEEN: Readonly<Record<string, string>> = { expired: 'expired', cancelled: 'withdrawn', idle: 'dismissed' };
/** `status` of an order after its push has ended so. */
const STATUS_AFTER = { expired: 'expired', dismissed: 'dismissed', replaced: 'replaced' } as const;

/** What boxes showed and reported, as expectations. */
export class Views {
  readonly #recording: Recording;
  readonly #stand: Stand;
  readonly #ledger: Ledger;
  readonly #reports: Report[];

  constructor(recording: Recording, stand: Stand, ledger: Ledger) {
    this.#recording = recording;
    this.#stand = stand;
    this.#ledger = ledger;
    this.#reports = reportsOf(recording);
  }

  lines(): Line[] {
    const seen = this.#stand.boxes.flatMap((box) => this.#seenOn(box));
    // Those that no screen was seen of.
    const told = this.#reports.flatMap((it) => this.#linesOf(it));
    return [...seen, ...told];
  }

  #seenOn(box: string): Line[] {
    const lines: Line[] = [];
    let last: Sight | undefined;
    let lastKey = '';
    for (const sight of this.#recording.sights) {
      if (sight.box !== box) continue;
      const key = JSON.stringify([sight.screen, sight.qr, sight.screen === 'idle' ? '' : amountIn(sight.text)]);
      if (key === lastKey) continue;
      lines.push(...this.#pressedBefore(sight, last), ...this.#expectationsOf(sight));
      [last, lastKey] = [sight, key];
    }
    return lines;
  }

  /** The key that must have been pressed between two screens: nothing else takes a notice away so soon. */
  #pressedBefore(sight: Sight, before: Sight | undefined): Line[] {
    const { atMs, box, screen } = sight;
    const press = line(atMs, { ...this.#stand.boxKey(box), press: 'dismiss' });
    const isBack = screen === 'idle' || (screen === 'payment' && this.#showOf(sight)?.order !== undefined);
    const holdMs = HOLDS_MS[before?.screen ?? ''];
    if (before === undefined || !isBack) return [];
    if (holdMs !== undefined) {
      const isNew = screen === 'payment' && (this.#showOf(sight)?.atMs ?? 0) >= before.atMs - SEEN_LATE_MS;
      return !isNew && atMs - before.atMs < holdMs - SOON_MS ? [press] : [];
    }
    // A payment whose notice went away before it was seen.
    const paid =
      screen === 'idle' && before.screen === 'payment' && this.#report(sight, 'paid', () => true, atMs - before.atMs);
    if (!paid) return [];
    paid.isTold = false;
    return [press];
  }

  #expectationsOf(sight: Sight): Line[] {
    const { screen, atMs, box } = sight;
    if (screen !== undefined && PASSING.includes(screen)) return [];
    if (screen === undefined || NONE_BY_STEPS.includes(screen)) {
      return [note(atMs, `${box} showed ${screen ?? 'a screen of no known kind'}, which no step brings about`)];
    }
    const key = this.#stand.boxKey(box);
    if (screen === 'payment') return [this.#paymentSeen(sight)];
    if (screen === 'paid') return [this.#paidSeen(sight)];
    if (screen === 'history') {
      return [line(atMs, { ...key, press: 'history' }), line(atMs, { ...key, expect: { screen, qr: 'none' } })];
    }
    // The end of an order is dated by its report.
    const ended = this.#report(sight, 'ended', ({ how }) => HOW_SEEN[screen] === how);
    const show = ended === undefined ? undefined : this.#ledger.shows.get((ended.body as UpOf<'ended'>).pushId);
    const words = show?.order === undefined || screen === 'idle' ? {} : amountText(sight, show.order.amount);
    const status = screen === 'idle' ? 'dismissed' : screen;
    const report = show?.order === undefined ? {} : { report: { order: this.#ledger.nameOf(show.order), status } };
    const endMs = ended?.atMs ?? atMs;
    const pressed = ended !== undefined && screen === 'idle' ? [line(endMs, { ...key, press: 'dismiss' })] : [];
    return [...pressed, line(endMs, { ...key, expect: { screen, qr: 'none', ...words, ...report } })];
  }

  #paymentSeen(sight: Sight): Line {
    const { box, qr, atMs } = sight;
    const show = this.#showOf(sight);
    if (show?.order === undefined) {
      return note(atMs, `${box} showed a QR that no call of this recording brought: ${qr ?? 'none could be read'}`);
    }
    const { order } = show;
    const told = this.#report(sight, 'shown', ({ pushId }) => pushId === show.pushId);
    const report = show.shownMs === undefined ? {} : { report: { order: this.#ledger.nameOf(order), status: 'shown' } };
    return line(told?.atMs ?? atMs, {
      ...this.#stand.boxKey(box),
      expect: { screen: 'payment', qr: variable(order.name, 'qrCode'), ...amountText(sight, order.amount), ...report },
    });
  }

  /** The push whose QR was seen. */
  #showOf({ box, qr, atMs }: Sight): Show | undefined {
    const shows = [...this.#ledger.shows.values()];
    return shows.findLast((it) => it.box === box && it.qrCode === qr && it.atMs <= atMs + SEEN_LATE_MS);
  }

  #paidSeen(sight: Sight): Line {
    const { box, atMs, text } = sight;
    const told = this.#report(
      sight,
      'paid',
      ({ amount }) => text.includes(formatAmount(amount)),
      Number.POSITIVE_INFINITY,
    );
    const payment =
      told === undefined ? undefined : this.#ledger.payments.get((told.body as UpOf<'paid'>).transactionId);
    const [known] = payment === undefined ? this.#paymentsOf(text) : [payment];
    if (known === undefined) return note(atMs, `${box} showed a payment that no call of this recording made`);
    const report = payment === undefined ? {} : { report: { payment: variable(payment.name, 'transactionId') } };
    const isAtOnce = told !== undefined && atMs - told.atMs <= SEEN_LATE_MS;
    return line(isAtOnce ? told.atMs : atMs, {
      ...this.#stand.boxKey(box),
      expect: { screen: 'paid', qr: 'none', ...amountText(sight, known.amount), ...report },
    });
  }

  #paymentsOf(text: string) {
    return [...this.#ledger.payments.values()].filter(({ amount }) => text.includes(formatAmount(amount)));
  }

  /** The first report of this kind that no screen was seen of, from a moment before the sight. */
  #report<T extends Report['body']['type']>(
    { box, atMs }: Sight,
    type: T,
    fits: (body: UpOf<T>) => boolean,
    withinMs = SEEN_LATE_MS,
  ): Report | undefined {
    const found = this.#reports.find(
      (it) =>
        !it.isTold &&
        it.box === box &&
        it.body.type === type &&
        it.atMs <= atMs + SEEN_LATE_MS &&
        atMs - it.atMs <= withinMs &&
        fits(it.body as unknown as UpOf<T>),
    );
    if (found !== undefined) found.isTold = true;
    return found;
  }

  /** A report of which no screen was seen. */
  #linesOf({ atMs, box, body, isTold }: Report): Line[] {
    const key = this.#stand.boxKey(box);
    if (body.type === 'paid') {
      const payment = this.#ledger.payments.get(body.transactionId);
      if (payment === undefined || isTold) return [];
      return [line(atMs, { ...key, expect: { report: { payment: variable(payment.name, 'transactionId') } } })];
    }
    const show = this.#ledger.shows.get(body.pushId);
    const order = show?.order;
    if (order === undefined) return [];
    const expectOrder = (status: string, more: object = {}) =>
      line(atMs, { ...key, expect: { ...more, report: { order: this.#ledger.nameOf(order), status } } });
    if (body.type === 'shown') {
      return isTold ? [] : [expectOrder('shown', { state: 'showing', qr: variable(order.name, 'qrCode') })];
    }
    const { how } = body;
    const pressed = how === 'dismissed' && !isTold ? [line(atMs, { ...key, press: 'dismiss' })] : [];
    if (isTold || !(how in STATUS_AFTER) || this.#isPushedAgain(show)) return pressed;
    return [...pressed, expectOrder(STATUS_AFTER[how as keyof typeof STATUS_AFTER])];
  }

  /** The status of an order is that of its newest push. */
  #isPushedAgain(show: Show | undefined): boolean {
    if (show === undefined) return true;
    return [...this.#ledger.shows.values()].some((it) => it.order === show.order && it.atMs > show.atMs);
  }
}

function reportsOf({ heard }: Recording): Report[] {
  const reports = new Map<string, Report>();
  for (const it of heard) {
    if (it.kind !== 'message' || it.to !== 'gateway') continue;
    const { atMs, box, body } = it as Message;
    const { type } = body;
    if (type !== 'shown' && type !== 'ended' && type !== 'paid') continue;
    const report = body as unknown as Report['body'];
    const key = JSON.stringify([box, type, report.type === 'paid' ? report.transactionId : report.pushId]);
    if (!reports.has(key)) reports.set(key, { atMs, box, body: report, isTold: false });
  }
  return [...reports.values()];
}

/** An amount as screens write it, in a text. */
function amountIn(text: string): string {
  return /[\d.]+ ₫/.exec(text)?.[0] ?? '';
}

function amountText({ text }: Sight, amount: number): { text?: string } {
  const words = formatAmount(amount);
  return text.includes(words) ? { text: words } : {};
}
