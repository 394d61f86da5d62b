import type { BoxEvent, QrCheck } from '../../box/state.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Random } from '../../lib/random.ts';
import { BOX_ALIVE_MS } from '../../protocol/http-api.ts';
import type { InboundMessage } from '../contract.ts';

/**
 * The event that a message of the gateway makes; undefined for one that has no place within a session. A push was made
 * `sessionMs` after the hello, which was sent at `helloAtMs` of the monotonic clock (PROTOCOL.md, clause SIG-4).
 */
export function messageEvent(
  message: InboundMessage,
  helloAtMs: number,
  checkQr: (qrCode: string) => QrCheck,
): BoxEvent | undefined {
  switch (message.type) {
    case 'show':
      return {
        type: 'push',
        push: message,
        bornAtMs: helloAtMs + message.sessionMs,
        qrCheck: checkQr(message.qrCode),
      };
    case 'overtaken':
      return { type: 'overtaken', pushId: message.pushId };
    case 'withdraw':
      return { type: 'withdraw', pushId: message.pushId, why: message.why };
    case 'payment':
      return { type: 'payment', payment: message };
    case 'ack':
      return { type: 'acked', ids: message.reportIds };
    default:
      return undefined;
  }
}

/**
 * A session times everything from its hello (PROTOCOL.md, clause SIG-4), and two clocks drift by seconds a day. After
 * this time it begins anew, once no QR is on the screen.
 */
const SESSION_MAX_MS = 86_400_000;
const RENEWAL_RETRY_MS = 60_000;

/** Settles once the session should begin anew, or `signal` aborts. */
export async function untilRenewal(clock: Clock, isShowing: () => boolean, signal: AbortSignal): Promise<void> {
  await clock.sleep(SESSION_MAX_MS, signal);
  while (!signal.aborted && isShowing()) await clock.sleep(RENEWAL_RETRY_MS, signal);
}

/**
 * Asks the gateway every `BOX_ALIVE_MS` whether it hears the box: a connection may be open although no message arrives
 * (PROTOCOL.md, clause MSG-11).
 */
export class Heartbeat {
  readonly #deps: { clock: Clock; random: Random };
  /** The id of the heartbeat that has not been answered. */
  #unanswered: string | undefined;

  constructor(deps: { clock: Clock; random: Random }) {
    this.#deps = deps;
  }

  answered(aliveId: string): void {
    if (aliveId === this.#unanswered) this.#unanswered = undefined;
  }

  /** Sends heartbeats; settles once one was not answered before the next is due, or `signal` aborts. */
  async untilUnanswered(send: (aliveId: string) => void, signal: AbortSignal): Promise<void> {
    const { clock, random } = this.#deps;
    for (;;) {
      await clock.sleep(BOX_ALIVE_MS, signal);
      if (signal.aborted || this.#unanswered !== undefined) return;
      const aliveId = random.uuid();
      this.#unanswered = aliveId;
      send(aliveId);
    }
  }
}
