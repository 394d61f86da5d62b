import type { Display, PanelSurface } from '../../device/display/contract.ts';
import type { Scene } from '../../device/scene.ts';
import type { Clock } from '../../lib/clock.ts';

/** The tracker stores this many problems as text and only counts further ones. */
const PROBLEMS_MAX = 100;

/** An order for one box. Its content and QR are unique within the fleet. */
export interface FleetOrder {
  readonly terminalCode: string;
  readonly orderId: string;
  readonly content: string;
  readonly amount: number;
  readonly qrCode: string;
  /** `SUCCESS` or the refusal code; undefined while pending and when no answer came. */
  answer?: string;
  /** True once the QR has been on the box's screen. */
  wasShown: boolean;
  /** The reason why the QR must no longer be on the screen. */
  over?: 'replaced' | 'expired' | 'paid';
  payment?: FleetPayment;
}

/** A customer's payment. Times are on the monotonic clock. */
export interface FleetPayment {
  readonly askedAtMs: number;
  /** The transaction id from the gateway that accepted it. */
  transactionId?: string;
  /** The refusal code, or why there is no answer. Without an answer the gateway may still have accepted it. */
  refusal?: string;
}

/** A payment as a box showed it. */
export interface PaidShown {
  readonly terminalCode: string;
  readonly content: string;
  readonly amount: number;
  readonly firstAtMs: number;
  /** The number of times that the screen changed to it. */
  times: number;
}

/** Tracks orders and what the screens showed. Adds a problem as soon as a screen shows something that is never allowed. */
export class OrderTracker {
  readonly #clock: Clock;
  readonly #byQr = new Map<string, FleetOrder>();
  readonly #byContent = new Map<string, FleetOrder>();
  readonly #paidShown = new Map<string, PaidShown>();
  /** By terminalCode. */
  readonly #screens = new Map<string, { scene: Scene; order: FleetOrder | undefined }>();
  /** The order whose QR each box showed last, by terminalCode. */
  readonly #lastShown = new Map<string, FleetOrder>();
  readonly #problems: string[] = [];
  #problemsOmitted = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get orders(): Iterable<FleetOrder> {
    return this.#byQr.values();
  }

  /** Returns the first problems as text, and the number of further ones. */
  get problems(): { listed: readonly string[]; omitted: number } {
    return { listed: this.#problems, omitted: this.#problemsOmitted };
  }

  /** Adds an order. The caller adds it before the push, because a screen may show the QR at once. */
  add(order: FleetOrder): void {
    this.#byQr.set(order.qrCode, order);
    this.#byContent.set(order.content, order);
  }

  orderWith(content: string): FleetOrder | undefined {
    return this.#byContent.get(content);
  }

  /** Returns how boxes showed the payment; undefined while none has. */
  paidShown(transactionId: string): PaidShown | undefined {
    return this.#paidShown.get(transactionId);
  }

  /** Returns the order whose QR is on the box's screen now. */
  shownOn(terminalCode: string): FleetOrder | undefined {
    return this.#screens.get(terminalCode)?.order;
  }

  problem(text: string): void {
    if (this.#problems.length < PROBLEMS_MAX) this.#problems.push(text);
    else this.#problemsOmitted += 1;
  }

  /** Records what a display has drawn: the QR of its frame, or null, and the scene that the frame was made from. */
  drawn(terminalCode: string, qrCode: string | null, scene: Scene): void {
    const before = this.#screens.get(terminalCode);
    const order = qrCode === null ? undefined : this.#qrDrawn(terminalCode, qrCode);
    this.#screens.set(terminalCode, { scene, order });
    if (scene.kind === 'expired') this.#end(terminalCode, scene.content, 'expired');
    if (scene.kind !== 'paid') return;
    this.#end(terminalCode, scene.content, 'paid');
    const { transactionId, content, amount } = scene;
    const isAnother = before?.scene.kind !== 'paid' || before.scene.transactionId !== transactionId;
    const known = this.#paidShown.get(transactionId);
    if (known === undefined) {
      const firstAtMs = this.#clock.monotonicMs();
      this.#paidShown.set(transactionId, { terminalCode, content, amount, firstAtMs, times: 1 });
    } else if (known.terminalCode !== terminalCode) {
      this.problem(`${terminalCode} shows the payment ${transactionId} of ${known.terminalCode}`);
    } else if (isAnother) {
      known.times += 1;
    }
  }

  #qrDrawn(terminalCode: string, qrCode: string): FleetOrder | undefined {
    const order = this.#byQr.get(qrCode);
    if (order === undefined) {
      this.problem(`${terminalCode} shows a QR that no order has: ${qrCode}`);
      return undefined;
    }
    if (order.terminalCode !== terminalCode) {
      this.problem(`${terminalCode} shows the QR of order ${order.orderId}, which is for ${order.terminalCode}`);
      return order;
    }
    if (order.over !== undefined) {
      this.problem(`${terminalCode} shows the QR of order ${order.orderId}, which was ${order.over}`);
    }
    const last = this.#lastShown.get(terminalCode);
    if (last !== undefined && last !== order) last.over ??= 'replaced';
    this.#lastShown.set(terminalCode, order);
    order.wasShown = true;
    return order;
  }

  #end(terminalCode: string, content: string, over: 'expired' | 'paid'): void {
    const order = this.#byContent.get(content);
    if (order?.terminalCode === terminalCode) order.over = over;
  }
}

/** Common smart panels have a QR area and payload limit like this. Every VietQR payload fits. */
const SURFACE: PanelSurface = { kind: 'panel', qr: { sidePixels: 400, charsMax: 512 }, accents: true };

/** Receives the QR of each frame that a box has drawn, null without one, and the scene of the frame. */
export type OnScreen = (qrCode: string | null, scene: Scene) => void;

/**
 * The time to send 300 bytes at 115,200 baud. Without a delay, nobody would notice a box that confirms a QR before it
 * is on the screen.
 */
const DRAW_MS = 26;

/** Returns a smart panel in memory. It draws no pixels, so hundreds of complete boxes fit into one process. */
export function fleetPanel(onScreen: OnScreen, clock: Clock): Display {
  return {
    surface: SURFACE,
    draw: async (frame, scene) => {
      await clock.sleep(DRAW_MS);
      onScreen(frame.kind === 'panel' ? frame.qrCode : null, scene);
    },
    close: async () => undefined,
  };
}
