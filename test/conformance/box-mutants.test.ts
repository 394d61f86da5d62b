import { request as ask, createServer, type IncomingMessage, type OutgoingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { IClientOptions } from 'mqtt';
import { afterAll, describe, expect, it, onTestFinished, vi } from 'vitest';
import type { InboundMessage, TransportIo } from '../../src/agent/contract.ts';
import { decodeDown, encode } from '../../src/protocol/codec.ts';
import { readJws } from '../../src/protocol/jws.ts';
import type { DownOf, UpMessage } from '../../src/protocol/messages.ts';
import type { SealRefusal } from '../../src/protocol/seal.ts';
import { decodeVietQr, encodeVietQr } from '../../src/protocol/vietqr.ts';
import { boxChecksNear, brokenClauses, judge, type Mutant, type Wire } from './box-fixture.ts';
import { MUTANT_TIMEOUT_MS } from './nearby-checks.ts';

/** What is slow to be seen on the panel is later by so much. */
const LAG_MS = 2_000;
const FROZEN_MS = 8_000;

const MUTANTS: Record<string, Mutant> = {
  'says shown before the QR is on the screen': {
    breaks: ['AGT-2'],
    panel: (drawn, nowMs) => drawn.findLast(({ atMs }) => atMs <= nowMs - LAG_MS) ?? { atMs: 0, qr: undefined },
  },
  'shows another QR than it was told to': {
    breaks: ['AGT-2'],
    wire: onShow((show) => ({ ...show, qrCode: changedQr(show, { purpose: 'SOMETHING ELSE' }) })),
  },
  'says accepted after shown': {
    breaks: ['AGT-2'],
    wire: () => {
      let held: UpMessage[] = [];
      return {
        up: (message) => {
          if (message.type === 'accepted') {
            held = [message];
            return [];
          }
          const all = [message, ...held];
          held = [];
          return all;
        },
      };
    },
  },
  'says what no box says': {
    // What is not taken does not count, and the next message leaves out its number.
    breaks: ['MSG-2', 'SIG-1'],
    wire: () => ({
      up: (message) =>
        message.type === 'accepted'
          ? [message, { ...message, id: crypto.randomUUID(), type: 'seen' } as unknown as UpMessage]
          : [message],
    }),
  },
  'does not look at the amount in the QR': {
    breaks: ['AGT-1'],
    wire: onShow((show) => ({ ...show, amount: qrIn(show)?.amount ?? show.amount })),
  },
  'does not look at the account in the QR': {
    breaks: ['AGT-1'],
    wire: onShow((show) => ({ ...show, qrCode: changedQr(show, { account: show.bankAccount }) })),
  },
  'shows a QR to a card': {
    breaks: ['AGT-1'],
    wire: onShow((show) => ({ ...show, qrCode: changedQr(show, { service: 'account' }) })),
  },
  'takes a push that is over when it comes': {
    breaks: ['AGT-1'],
    wire: ({ clock }) => {
      const bornMs = clock.monotonicMs();
      return onShow((show) => {
        const isOver = show.sessionMs + show.expiresInMs < clock.monotonicMs() - bornMs;
        return isOver ? { ...show, expiresInMs: 60_000 } : show;
      })();
    },
  },
  'takes messages a second time': {
    breaks: ['SIG-3'],
    wire: believes('MESSAGE_REPLAYED'),
  },
  'takes messages out of their order': {
    breaks: ['SIG-3'],
    wire: believes('MESSAGE_REORDERED'),
  },
  'does not check signatures': {
    breaks: ['SIG-3'],
    wire: believes('SIGNATURE_INVALID'),
  },
  'believes any key': {
    breaks: ['SIG-3'],
    wire: believes('KEY_UNKNOWN'),
  },
  'takes what has expired': {
    breaks: ['SIG-4'],
    wire: believes('MESSAGE_EXPIRED'),
  },
  'does not follow the gateway to another key': {
    breaks: ['SIG-5'],
    wire: ({ seal }) => {
      let first: string | undefined;
      return {
        seal: {
          open: (bytes) => {
            const jws = readJws(bytes);
            const kid = typeof jws === 'string' ? undefined : jws.head.kid;
            const opened = first === undefined || kid === first ? seal.open(bytes) : unknownKey();
            if (opened.ok) first ??= kid;
            return opened;
          },
        },
      };
    },
  },
  'has another secret': {
    breaks: ['TOP-2'],
    setup: (setup) => ({ ...setup, identity: { ...setup.identity, secret: 'what nobody else knows' } }),
  },
  'has another secret, over HTTP': {
    breaks: ['TOP-2'],
    transport: 'http',
    setup: (setup) => ({ ...setup, identity: { ...setup.identity, secret: 'what nobody else knows' } }),
  },
  'gives no sign of life': {
    breaks: ['MSG-11'],
    needs: ['slow'],
    wire: takenForHeard(() => []),
  },
  'does not care whether it is heard': {
    breaks: ['MSG-11'],
    needs: ['slow'],
    wire: takenForHeard((message) => [message]),
  },
  'does not come back when it is told that its session is over': {
    breaks: ['MSG-12'],
    wire: () => ({
      down: (message) => (message.type === 'refused' && message.code === 'SESSION_ENDED' ? [] : [message]),
    }),
  },
  'posts messages as JSON': {
    breaks: ['BOX-HTTP-2'],
    transport: 'http',
    through: (origin) => changingProxy(origin, () => ({ 'content-type': 'application/json' })),
  },
  'has another serial number': {
    breaks: ['MSG-4'],
    setup: (setup) => ({ ...setup, identity: { ...setup.identity, serialNumber: 'VVB999999' } }),
  },
  'says hello without a seal': {
    breaks: ['SIG-1'],
    wire: ({ seal }) => ({
      seal: {
        seal: (message, challenge) => (message.type === 'hello' ? encode(message) : seal.seal(message, challenge)),
      },
    }),
  },
  'answers another challenge': {
    breaks: ['SIG-2'],
    wire: ({ seal }) => ({
      seal: { seal: (message) => seal.seal(message, '00000000-0000-4000-8000-000000000000') },
    }),
  },
  'leaves out numbers': {
    breaks: ['SIG-1'],
    wire: ({ seal }) => ({
      seal: {
        seal: (message, challenge) => {
          if (message.type === 'paid') seal.seal(message, challenge);
          return seal.seal(message, challenge);
        },
      },
    }),
  },
  'shows a push whose withdrawal came before it': {
    breaks: ['AGT-4'],
    wire: () => {
      const known = new Set<string>();
      return {
        down: async (message, say) => {
          if (message.type === 'show') known.add(message.pushId);
          if (message.type !== 'withdraw' || known.has(message.pushId)) return [message];
          const { v, id, sentAtMs, sessionId, pushId } = message;
          await say({ v, id, sentAtMs, sessionId, type: 'rejected', pushId, code: 'WITHDRAWN', reason: 'unknown' });
          return [];
        },
      };
    },
  },
  'keeps an expired QR on the screen': {
    breaks: ['AGT-3'],
    wire: ({ clock }, panel) => ({
      up: (message) => {
        if (message.type === 'ended' && message.how === 'expired') {
          panel.isFrozen = true;
          void clock.sleep(FROZEN_MS).then(() => {
            panel.isFrozen = false;
          });
        }
        return [message];
      },
    }),
  },
  'does not say that a push has expired': {
    breaks: ['AGT-3', 'AGT-8', 'MSG-5'],
    needs: ['restart', 'slow'],
    wire: () => ({ up: (message) => (message.type === 'ended' && message.how === 'expired' ? [] : [message]) }),
  },
  'goes by the calendar for the end of a push': {
    breaks: ['MSG-5'],
    wire: ({ clock }) =>
      onShow((show) => ({ ...show, expiresInMs: Math.max(1_000, show.expiresAtMs - clock.wallMs()) }))(),
  },
  'keeps the QR of an order that is paid': {
    breaks: ['AGT-5'],
    wire: onPayment((payment) => ({ ...payment, pushId: null })),
  },
  'ends the order on the screen for the payment of another': {
    breaks: ['AGT-6'],
    wire: () => {
      let onScreen: string | null = null;
      return {
        down: (message) => {
          if (message.type === 'show') onScreen = message.pushId;
          if (message.type !== 'payment' || message.pushId !== null || onScreen === null) return [message];
          const { v, id, sentAtMs, sessionId } = message;
          return [message, { v, id, sentAtMs, sessionId, type: 'withdraw', pushId: onScreen, why: 'paid' }];
        },
      };
    },
  },
  'announces a payment that is told again': {
    breaks: ['AGT-5'],
    wire: announcingAgain(),
  },
  'says another amount than was paid': {
    breaks: ['AGT-11', 'AGT-5', 'LIM-1', 'MSG-7'],
    wire: () => ({ up: (message) => [message.type === 'paid' ? { ...message, amount: message.amount - 1 } : message] }),
  },
  'sends reports once in a session': {
    breaks: ['MSG-6'],
    needs: ['slow'],
    wire: () => reportingOnce(new Set()),
  },
  'forgets its reports when the link breaks': {
    breaks: ['MSG-6'],
    wire: forgetful(),
  },
  'does not say what it shows in its hello': {
    breaks: ['MSG-4'],
    wire: () => ({ up: (message) => [message.type === 'hello' ? { ...message, shownPushId: null } : message] }),
  },
  'comes back after it was superseded': {
    breaks: ['MSG-8'],
    needs: ['restart', 'slow'],
    wire: () => ({
      down: (message) => [
        message.type === 'refused' && message.code === 'SUPERSEDED' ? { ...message, code: 'NOT_REGISTERED' } : message,
      ],
    }),
  },
};

const mqttHas = vi.hoisted(() => ({ noWill: false, sessionAsId: false }));

vi.mock('mqtt', async (importOriginal) => {
  const real = await importOriginal<typeof import('mqtt')>();
  const connect = (url: string, { will, ...options }: IClientOptions) => {
    const { sessionId = '' } = JSON.parse(String(will?.payload ?? '{}')) as { sessionId?: string };
    const named = mqttHas.sessionAsId ? { ...options, clientId: sessionId.replaceAll('-', '').slice(0, 23) } : options;
    return real.connect(url, mqttHas.noWill || will === undefined ? named : { ...named, will });
  };
  return { ...real, connect };
});

describe.concurrent('a box that', () => {
  it.for(Object.entries(MUTANTS))(
    '%s is told so by its clause, and by no other',
    { timeout: MUTANT_TIMEOUT_MS },
    async ([, mutant]) => {
      const without = (['restart', 'slow'] as const).filter((need) => mutant.needs?.includes(need) !== true);
      const checks = boxChecksNear(mutant.breaks);
      const results = await judge(mutant, {
        without,
        checks,
        ...(mutant.transport && { transport: mutant.transport }),
      });
      expect(brokenClauses(results)).toEqual(mutant.breaks);
    },
  );
});

describe('over MQTT a box', () => {
  it.each([
    ['without a last will', 'noWill', 'PRE-1'],
    ['whose client id tells its session', 'sessionAsId', 'TOP-6'],
  ] as const)('%s is told so by its clause, and by no other', async (_what, fault, clause) => {
    mqttHas[fault] = true;
    onTestFinished(() => {
      mqttHas[fault] = false;
    });
    const results = await judge(
      { breaks: [clause] },
      { without: ['restart', 'slow'], checks: boxChecksNear([clause]) },
    );
    expect(brokenClauses(results)).toEqual([clause]);
  });
});

/** What a box sends over HTTP, with other headers, or answered in place of the gateway; its streams pass as they are. */
async function changingProxy(
  origin: string,
  change: (request: IncomingMessage) => OutgoingHttpHeaders | number,
): Promise<string> {
  const server = createServer((request, response) => {
    const changed = request.method === 'POST' ? change(request) : {};
    if (typeof changed === 'number') {
      response.writeHead(changed).end();
      return;
    }
    const { method = 'GET', headers, url = '' } = request;
    const passed = ask(`${origin}${url}`, { method, headers: { ...headers, ...changed }, agent: false });
    passed.on('response', (answer) => {
      response.writeHead(answer.statusCode ?? 500, answer.headers);
      response.flushHeaders();
      answer.pipe(response);
      answer.on('error', () => response.destroy());
    });
    passed.on('error', () => response.destroy());
    response.on('close', () => passed.destroy());
    request.pipe(passed);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  proxies.push(server);
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const proxies: Server[] = [];
afterAll(() => {
  for (const server of proxies) {
    server.close();
    server.closeAllConnections();
  }
});

/** A box that takes every sign of life for answered. */
function takenForHeard(up: (alive: UpMessage) => UpMessage[]): (io: TransportIo) => Wire {
  return (io) => ({
    up: (message) => {
      if (message.type !== 'alive') return [message];
      io.heard(message.id);
      return up(message);
    },
  });
}

function onShow(change: (show: DownOf<'show'>) => DownOf<'show'>): () => Wire {
  return () => ({ down: (message) => [message.type === 'show' ? change(message) : message] });
}

function onPayment(change: (payment: DownOf<'payment'>) => DownOf<'payment'>): () => Wire {
  return () => ({ down: (message) => [message.type === 'payment' ? change(message) : message] });
}

function qrIn({ qrCode }: DownOf<'show'>) {
  const decoded = decodeVietQr(qrCode);
  return decoded.ok ? decoded.value : undefined;
}

/** The QR with other words in it; as it is where it is none, or longer than any that a shop makes. */
function changedQr(show: DownOf<'show'>, change: object): string {
  const qr = qrIn(show);
  return qr === undefined || show.qrCode.length > 200 ? show.qrCode : encodeVietQr({ ...qr, ...change });
}

/** Takes what was refused for this reason. */
function believes(code: SealRefusal): (io: TransportIo) => Wire {
  return ({ seal }) => ({
    seal: {
      open: (bytes) => {
        const opened = seal.open(bytes);
        if (opened.ok || opened.code !== code) return opened;
        const jws = readJws(bytes);
        return typeof jws === 'string' ? opened : (believed(jws.payload) ?? opened);
      },
    },
  });
}

function believed(payload: string) {
  const decoded = decodeDown(payload);
  return decoded.ok ? { ok: true as const, value: decoded.value } : undefined;
}

function unknownKey() {
  return { ok: false as const, code: 'KEY_UNKNOWN' as const, reason: 'not the first key' };
}

/** A repetition looks like another payment to the box, and its report like one of the first. */
function announcingAgain(): () => Wire {
  const originals = new Map<string, string>();
  let count = 0;
  return () => ({
    down: (message): InboundMessage[] => {
      if (message.type === 'ack') {
        const renamed = [...originals].filter(([, id]) => message.reportIds.includes(id)).map(([id]) => id);
        return [{ ...message, reportIds: [...message.reportIds, ...renamed] }];
      }
      if (message.type !== 'payment' || !message.repeated) return [message];
      count += 1;
      const transactionId = `00000000-0000-4000-8000-${String(count).padStart(12, '0')}`;
      originals.set(transactionId, message.transactionId);
      return [{ ...message, transactionId }];
    },
    up: (message) => {
      const original = message.type === 'paid' ? originals.get(message.transactionId) : undefined;
      if (message.type !== 'paid' || original === undefined) return [message];
      return [{ ...message, id: original, transactionId: original }];
    },
  });
}

/** Says a report that was said before only where it is asked for. */
function reportingOnce(said: Set<string>): Wire {
  const asked = new Set<string>();
  return {
    down: (message) => {
      if (message.type === 'payment') asked.add(message.transactionId);
      return [message];
    },
    up: (message) => {
      if (message.type !== 'paid' && message.type !== 'ended') return [message];
      const isNew = !said.has(message.id) || asked.delete(message.id);
      said.add(message.id);
      return isNew ? [message] : [];
    },
  };
}

function forgetful(): () => Wire {
  const before = new Set<string>();
  return () => {
    const asked = new Set<string>();
    const mine = new Set<string>();
    return {
      down: (message) => {
        if (message.type === 'payment') asked.add(message.transactionId);
        return [message];
      },
      up: (message) => {
        if (message.type !== 'paid' && message.type !== 'ended') return [message];
        const isForgotten = before.has(message.id) && !mine.has(message.id) && !asked.has(message.id);
        if (isForgotten) return [];
        mine.add(message.id);
        before.add(message.id);
        return [message];
      },
    };
  };
}
