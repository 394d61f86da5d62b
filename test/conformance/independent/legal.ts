import type { Json } from './signed-session.ts';

/* Messages to a box by their fields (PROTOCOL.md, clauses MSG-1 to MSG-3 and LIM). */

type Rule = (value: unknown) => boolean;

const uuid: Rule = (it) => typeof it === 'string' && /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(it);
const text =
  (most: number): Rule =>
  (it) =>
    typeof it === 'string' && it.length <= most;
const whole =
  (least: number, most: number): Rule =>
  (it) =>
    Number.isInteger(it) && Number(it) >= least && Number(it) <= most;
const amount = whole(1, 9_999_999_999_999);
const account: Rule = (it) => typeof it === 'string' && /^[A-Za-z0-9]{1,19}$/.test(it);
const order = { orderId: text(64), amount, content: text(99), bankAccount: account, bankCode: text(64) };
const timeMs = whole(0, Number.MAX_SAFE_INTEGER);
const ids: Rule = (it) => Array.isArray(it) && it.every(uuid);

const RULES: Record<string, Record<string, Rule>> = {
  welcome: {
    openPushIds: ids,
    link: (it) => it === null || account((it as Json | undefined)?.bankAccount),
  },
  refused: { code: text(64) },
  show: { ...order, pushId: uuid, qrCode: text(512), expiresAtMs: timeMs, expiresInMs: timeMs, sessionMs: timeMs },
  withdraw: { pushId: uuid, why: text(64) },
  payment: {
    ...order,
    transactionId: uuid,
    pushId: (it) => it === null || uuid(it),
    paidAtMs: timeMs,
    repeated: (it) => typeof it === 'boolean',
  },
  ack: { reportIds: ids },
  heard: { aliveId: uuid },
};

export function isLegal(message: Json): boolean {
  const rules = RULES[String(message.type)];
  return rules !== undefined && Object.entries(rules).every(([name, isRight]) => isRight(message[name]));
}
