import type { BoxEvent, QrCheck } from '../../box/state.ts';
import type { InboundMessage } from '../contract.ts';

/**
 * What a message of the gateway is to the box; undefined for one that has no place within a session. A push is born as long
 * after the hello, at `helloAtMs` of the monotonic clock, as the gateway says (PROTOCOL.md, clause SIG-4).
 */
export function eventOf(
  message: InboundMessage,
  helloAtMs: number,
  verdict: (qrCode: string) => QrCheck,
): BoxEvent | undefined {
  switch (message.type) {
    case 'show':
      return {
        type: 'push',
        push: message,
        bornAtMs: helloAtMs + message.sessionMs,
        qrCheck: verdict(message.qrCode),
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
