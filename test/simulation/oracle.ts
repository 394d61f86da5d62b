import type { Entry, Payment } from '../../src/device/box/entry.ts';
import { INVARIANTS } from '../../src/device/box/machine.ts';
import type { BoxEvent, BoxState } from '../../src/device/box/state.ts';
import { REMEMBERED_MAX, UNCONFIRMED_MAX, UNSENT_MAX } from '../../src/device/box/state.ts';
import type { Scene } from '../../src/device/scene.ts';
import type { DownOf } from '../../src/protocol/messages.ts';
import { decodeVietQr } from '../../src/protocol/vietqr.ts';
import type { BoxDisk } from './box-disk.ts';
import type { BoxMachine } from './box-machine.ts';

/** A picture that is due away may stay for as long as the display takes to draw the next one. */
const REDRAW_MS = 250;
/** A withdrawal waits for the disk and the display. */
const WITHDRAW_MS = 1_000;

/** A push as the gateway told it, in true time. */
export interface KnownPush {
  pushId: string;
  orderId: string;
  terminalCode: string;
  qrCode: string;
  sessionId: string;
  bornAtMs: number;
  expiresAtMs: number;
  /** When a box was told to take it back. */
  withdrawnAtMs: number;
  lastSeenAtMs: number;
}

/** Sees all that people see and hear, in true time, and says what must never happen. */
export class Oracle {
  readonly #nowMs: () => number;
  readonly #accountOf: (terminalCode: string) => string | undefined;
  readonly pushes = new Map<string, KnownPush>();
  /** transactionId → devices that showed its paid screen. */
  readonly seenPaid = new Map<string, Set<string>>();
  /** transactionId → how often each device announced it. */
  readonly heard = new Map<string, Map<string, number>>();
  /** transactionId → the bodies that reached the partner. */
  readonly callbacks = new Map<string, string[]>();
  /** Payments that a device could not keep on its disk: a crash may make it announce them again. */
  readonly unrecorded = new Set<string>();
  /** What must never have happened, and did. */
  readonly violations: string[] = [];
  readonly #forgotten = new Set<string>();
  /** Withdrawals that have reached a device, and not yet its mind: a power cut takes them with it. */
  readonly #unheeded = new Map<BoxMachine, Set<string>>();
  readonly #onScreen = new Map<BoxMachine, Scene>();
  readonly #sessions = new Map<string, BoxMachine>();

  constructor(nowMs: () => number, accountOf: (terminalCode: string) => string | undefined) {
    this.#nowMs = nowMs;
    this.#accountOf = accountOf;
  }

  /** What is on the glass of a device; undefined for a dark one. */
  sceneOn(box: BoxMachine): Scene | undefined {
    return this.#onScreen.get(box);
  }

  opens(box: BoxMachine, sessionId: string): void {
    this.#sessions.set(sessionId, box);
  }

  pushed(terminalCode: string, show: DownOf<'show'>): void {
    const { pushId, orderId, qrCode, sessionId } = show;
    const expiresAtMs = Math.min(this.#nowMs() + show.expiresInMs, this.pushes.get(pushId)?.expiresAtMs ?? Infinity);
    const unseen = { bornAtMs: this.#nowMs(), withdrawnAtMs: Infinity, lastSeenAtMs: -Infinity };
    this.pushes.set(pushId, { pushId, orderId, qrCode, sessionId, terminalCode, expiresAtMs, ...unseen });
  }

  sees(box: BoxMachine, scene: Scene | undefined): void {
    this.check(box);
    if (scene === undefined) this.#onScreen.delete(box);
    else this.#onScreen.set(box, scene);
    if (scene?.kind === 'payment') this.#seesQr(box, scene);
    if (scene?.kind !== 'paid') return;
    const devices = this.seenPaid.get(scene.transactionId) ?? new Set();
    this.seenPaid.set(scene.transactionId, devices.add(box.name));
  }

  hears(box: BoxMachine, { transactionId }: Payment): void {
    const counts = this.heard.get(transactionId) ?? new Map<string, number>();
    this.heard.set(transactionId, counts);
    const count = (counts.get(box.name) ?? 0) + 1;
    counts.set(box.name, count);
    if (count > 1 && !this.unrecorded.has(transactionId)) {
      this.#wrong(`${box.name} announced ${transactionId} ${count} times`);
    }
  }

  happens(box: BoxMachine, event: BoxEvent): void {
    if (event.type !== 'withdraw') return;
    this.#unheeded.set(box, (this.#unheeded.get(box) ?? new Set()).add(event.pushId));
    const push = this.pushes.get(event.pushId);
    if (push !== undefined && this.isOf(box, push)) push.withdrawnAtMs = Math.min(push.withdrawnAtMs, this.#nowMs());
    this.check(box);
  }

  /** A state of a device's mind. */
  holds(box: BoxMachine, state: BoxState): void {
    const sizes = {
      unsent: UNSENT_MAX,
      announced: REMEMBERED_MAX,
      closedPushIds: REMEMBERED_MAX,
      unconfirmedPayments: UNCONFIRMED_MAX,
    } as const;
    for (const [name, max] of Object.entries(sizes) as [keyof typeof sizes, number][]) {
      if (state[name].length > max) this.#wrong(`${box.name} holds ${state[name].length} ${name}`);
    }
    for (const [invariant, holds] of Object.entries(INVARIANTS)) {
      if (!holds(state)) this.#wrong(`${box.name}: it is not true that ${invariant}`);
    }
    for (const pushId of state.closedPushIds) this.#unheeded.get(box)?.delete(pushId);
    for (const report of state.unsent) {
      if (report.type === 'paid' && !report.recorded) this.unrecorded.add(report.transactionId);
    }
  }

  /** The disk of a device did not take these. */
  forgets(entries: readonly Entry[]): void {
    for (const entry of entries) {
      if (entry.kind === 'payment') this.unrecorded.add(entry.payment.transactionId);
      if ('pushId' in entry && entry.pushId !== null) this.#forgotten.add(entry.pushId);
    }
  }

  /** A device starts: of a withdrawal that did not come to its disk it cannot know until its gateway tells it again. */
  starts(box: BoxMachine): void {
    const unheeded = this.#unheeded.get(box) ?? [];
    this.#unheeded.delete(box);
    for (const pushId of [...this.#forgotten, ...unheeded]) {
      const push = this.pushes.get(pushId);
      if (push !== undefined && this.isOf(box, push)) push.withdrawnAtMs = Number.POSITIVE_INFINITY;
    }
  }

  /** What a device says to have recorded is on its disk, where the disk has not refused it. */
  reports(transactionId: string, disks: readonly BoxDisk[]): void {
    if (this.unrecorded.has(transactionId)) return;
    if (!disks.some((disk) => disk.hasPayment(transactionId))) this.#wrong(`payment ${transactionId} is on no disk`);
  }

  called(body: string): void {
    const { transactionid } = JSON.parse(body) as { transactionid: string };
    const bodies = this.callbacks.get(transactionid) ?? [];
    this.callbacks.set(transactionid, bodies);
    bodies.push(body);
    if (bodies[0] !== body) this.#wrong(`the callbacks of ${transactionid} differ: ${bodies[0]} and ${body}`);
  }

  /** What is on a screen now may still be there. */
  check(box: BoxMachine): void {
    const scene = this.#onScreen.get(box);
    if (scene?.kind !== 'payment') return;
    const push = this.#pushOf(box, scene.pushId);
    if (push === undefined) return;
    const nowMs = this.#nowMs();
    push.lastSeenAtMs = nowMs;
    if (nowMs > push.expiresAtMs + REDRAW_MS) {
      this.#wrong(`${box.name} shows ${push.pushId} ${nowMs - push.expiresAtMs} ms after its expiry`);
    }
    if (nowMs > push.withdrawnAtMs + WITHDRAW_MS) {
      this.#wrong(`${box.name} shows ${push.pushId} ${nowMs - push.withdrawnAtMs} ms after its withdrawal`);
    }
  }

  #seesQr(box: BoxMachine, scene: Scene & { kind: 'payment' }): void {
    const push = this.#pushOf(box, scene.pushId);
    if (push === undefined) return;
    const qr = decodeVietQr(scene.qrCode);
    const account = this.#accountOf(box.identity.terminalCode);
    if (!qr.ok || qr.value.account !== account || scene.qrCode !== push.qrCode) {
      this.#wrong(`${box.name} shows a QR that is not its own: ${scene.qrCode}`);
    }
    this.check(box);
  }

  /** Whether this very device was told to show the push. */
  isOf(box: BoxMachine, push: KnownPush): boolean {
    return push.terminalCode === box.identity.terminalCode && this.#sessions.get(push.sessionId) === box;
  }

  #wrong(what: string): void {
    this.violations.push(what);
  }

  #pushOf(box: BoxMachine, pushId: string): KnownPush | undefined {
    const push = this.pushes.get(pushId);
    if (push === undefined) this.#wrong(`${box.name} shows ${pushId}, which was never pushed`);
    else if (!this.isOf(box, push)) {
      this.#wrong(`${box.name} shows ${pushId}, which was pushed to another`);
    }
    return push;
  }
}
