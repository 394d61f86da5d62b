import type { Display, Frame, PanelSurface } from '../../display/contract.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Scene } from '../../scene.ts';

/** Problems that are kept in words; the rest is counted. */
const PROBLEMS_MAX = 100;

/** An order of one shop of the fleet. Its content, and with it its QR, is that of no other order. */
export interface FleetOrder {
  readonly terminalCode: string;
  readonly orderId: string;
  readonly content: string;
  readonly amount: number;
  readonly qrCode: string;
  /** `SUCCESS` or the code of the refusal; undefined while it is awaited, and when no answer came. */
  answer?: string;
  /** Whether its QR has been on the screen of its box. */
  wasShown: boolean;
  /** Why its QR must not be on the screen any more. */
  over?: 'replaced' | 'expired' | 'paid';
  payment?: FleetPayment;
}

/** What a customer paid. Times are on the monotonic clock. */
export interface FleetPayment {
  readonly askedAtMs: number;
  /** Of the gateway that has accepted it. */
  transactionId?: string;
  /** The code of the refusal, or why there is no answer: then the gateway may have accepted it. */
  refusal?: string;
}

/** A payment as a screen told it. */
export interface PaidShown {
  readonly terminalCode: string;
  readonly content: string;
  readonly amount: number;
  readonly firstAtMs: number;
  /** How often the screen came to it from something else. */
  times: number;
}

/** What was asked for and what the screens showed; what must never be is a problem as soon as it is seen. */
export class OrderTracker {
  readonly #clock: Clock;
  readonly #byQr = new Map<string, FleetOrder>();
  readonly #byContent = new Map<string, FleetOrder>();
  readonly #paidShown = new Map<string, PaidShown>();
  /** By terminalCode. */
  readonly #screens = new Map<string, { scene: Scene; order: FleetOrder | undefined }>();
  /** By terminalCode, the order whose QR was on the screen last. */
  readonly #lastShown = new Map<string, FleetOrder>();
  readonly #problems: string[] = [];
  #problemsOmitted = 0;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  get orders(): Iterable<FleetOrder> {
    return this.#byQr.values();
  }

  /** The problems in words, at most so many, and how many more there are. */
  get problems(): { listed: readonly string[]; omitted: number } {
    return { listed: this.#problems, omitted: this.#problemsOmitted };
  }

  /** Before it is pushed: no screen can show it earlier. */
  add(order: FleetOrder): void {
    this.#byQr.set(order.qrCode, order);
    this.#byContent.set(order.content, order);
  }

  orderWith(content: string): FleetOrder | undefined {
    return this.#byContent.get(content);
  }

  /** How the screens told the payment; undefined while none has. */
  paidShown(transactionId: string): PaidShown | undefined {
    return this.#paidShown.get(transactionId);
  }

  /** The order whose QR is on the box's screen. */
  shownOn(terminalCode: string): FleetOrder | undefined {
    return this.#screens.get(terminalCode)?.order;
  }

  problem(text: string): void {
    if (this.#problems.length < PROBLEMS_MAX) this.#problems.push(text);
    else this.#problemsOmitted += 1;
  }

  /** A display has drawn a frame. */
  drawn(terminalCode: string, frame: Frame, scene: Scene): void {
    const before = this.#screens.get(terminalCode);
    const qrCode = frame.kind === 'panel' ? frame.qrCode : null;
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
      this.problem(`${terminalCode} shows a QR that nobody asked for: ${qrCode}`);
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

/** A square and a payload as common smart panels have them: every VietQR payload fits. */
const SURFACE: PanelSurface = { kind: 'panel', qr: { sidePixels: 400, charsMax: 512 }, accents: true };

/** What a box of the fleet has on its display: the frame as the panel was told, and the scene that it came from. */
export type OnScreen = (frame: Frame, scene: Scene) => void;

/**
 * What 300 bytes take at 115,200 baud. One that draws in no time could not tell a box that confirms a QR before it is on
 * the screen.
 */
const DRAW_MS = 26;

/** A smart panel in memory: it draws no pixels, so that hundreds of whole boxes have room in one process. */
export function fleetPanel(onScreen: OnScreen, clock: Clock): Display {
  return {
    surface: SURFACE,
    draw: async (frame, scene) => {
      await clock.sleep(DRAW_MS);
      onScreen(frame, scene);
    },
    close: async () => undefined,
  };
}
