import { boxIdTopic, macDigits } from '../../../../protocol/dialect.ts';
import { RETURN_MS } from '../../box/subject.ts';
import { Mismatch, PreconditionFailed, precondition } from '../../check.ts';
import type { DialectContext } from '../check-context.ts';
import { type DialectCheck, gap, noViolation, spec, unlinked } from '../dialect-check.ts';

/** The box must come back this often. */
const RECONNECTIONS = 3;
const AWAY_MS = 20_000;
/** Time in which a box asks a service that does not answer once more. */
const ASK_AGAIN_MS = 15_000;
/** Time in which a box believes an answer. */
const TAKEN_MS = 2_000;

/** Enrolment and account (PROTOCOL.md, clauses DIA-1 to DIA-4). Those of a box without an account come first. */
export const UNLINKED_CHECKS: readonly DialectCheck[] = [
  unlinked.spec('DIA-2', 'shows the certificate of its enrolment until it has an account', ['screen'], async (t) =>
    t.expectShown(certificate(t)),
  ),
  unlinked.gap('DIA-2', 'shows no certificate that a wallet could pay', ['screen', 'restart'], async (t) => {
    const payable = { ...t.staticQr('9999999999'), name: 'a certificate that a wallet could pay' };
    t.service.certificate = payable.qrCode;
    await t.restart();
    await t.expectNotShown(payable);
  }),
];

/** The connection on which it came, and its account. */
export const ENROLMENT_CHECKS: readonly DialectCheck[] = [
  spec('DIA-1', 'listens for the answer before it enrols', [], async (t) => {
    const { line, answerTopics } = t.service;
    const before = line?.askedBefore ?? [];
    if (before.some((it) => answerTopics.includes(it))) return;
    throw new Mismatch(`it enrolled when it listened to ${before.join(', ') || 'nothing'}`);
  }),
  gap('DIA-1', "listens for the answer's topic in both spellings, in a clean session", [], async (t) => {
    const { line, answerTopics } = t.service;
    const missing = answerTopics.filter((it) => line?.askedBefore?.includes(it) !== true);
    if (missing.length > 0) throw new Mismatch(`it does not listen to ${missing.join(', ')}`);
    if (line?.connect?.clean !== true) throw new Mismatch('it keeps its session: it would get what is long over');
  }),
  spec('DIA-4', 'shows the static QR of its account (N16)', ['screen'], async (t) => {
    await t.expectShown(t.staticQr());
  }),
  gap('DIA-4', 'shows no static QR of another account than the one named', ['screen'], async (t) => {
    const other = { ...t.staticQr('8888888888'), name: 'another account' };
    await t.say(t.linked({ qrCode: other.qrCode }));
    await t.expectNotShown(other);
  }),
];

/** Checks that break its connection: some firmware listens on its topic after its start only, so these come last. */
export const CONNECTION_CHECKS: readonly DialectCheck[] = [
  spec('DIA-1', 'enrols and listens on its topic again after each reconnect', [], async (t) => {
    for (let count = 0; count < RECONNECTIONS; count += 1) await t.reconnect();
  }),
  spec('DIA-1', 'comes back to a service that was away', [], async (t) => {
    const { line } = t.service;
    t.service.leave(true);
    await t.time.wait(AWAY_MS);
    t.service.leave(false);
    await t.expectBack(line, AWAY_MS + RETURN_MS);
  }),
  gap('DIA-1', 'asks again while nobody answers', [], async (t) => {
    const { service } = t;
    service.isSilent = true;
    const before = service.line;
    service.cut();
    const hasAsked = await t.run.isSoon(RETURN_MS, () => service.line !== before);
    if (!hasAsked) throw new PreconditionFailed('needs a box that comes back');
    const { line } = service;
    if (await t.run.isSoon(ASK_AGAIN_MS, () => (line?.enrolments ?? 0) > 1)) return;
    throw new Mismatch(`it has asked once in ${ASK_AGAIN_MS / 1000} s`);
  }),
  gap('DIA-3', 'an answer that it has not asked for changes nothing', [], async (t) => {
    const { service } = t;
    const boxId = Buffer.from(`${service.identity.terminalCode}${service.random.uuid()}`).toString('base64url');
    const hasTaken = () => !service.isHeard || service.line?.filters.has(boxIdTopic(boxId)) === true;
    await t.expectSurvives(async () => {
      // A box that asked in vain, as in the check before, may ask until its own boxId comes.
      for (const topic of service.answerTopics) await service.say(service.answer, { topic });
      await t.time.wait(TAKEN_MS);
      for (const topic of service.answerTopics) await service.say({ ...service.answer, boxId }, { topic });
      if (await t.run.isSoon(TAKEN_MS, hasTaken)) throw new Mismatch('it has taken the boxId of another box');
    });
  }),
  gap(
    'DIA-3',
    'after a restart it knows boxId and account, whatever the service says',
    ['screen', 'restart'],
    async (t) => {
      const { service } = t;
      await precondition('its static QR', () => t.expectShown(t.staticQr()));
      service.isSilent = true;
      await t.restart();
      if (!(await t.isBack())) throw new Mismatch('it does not listen on the topic of its boxId');
      await t.expectShown(t.staticQr());
    },
  ),
  gap('DIA-7', 'without a connection it shows no static QR, and a dynamic one stays', ['screen'], async (t) => {
    await precondition('its static QR', () => t.expectShown(t.staticQr()));
    t.service.leave(true);
    await t.expectTakenAway(t.staticQr(), RETURN_MS);
    t.service.leave(false);
    await precondition('a box that comes back', () => t.expectBack(undefined));
    const order = await t.pushShown();
    t.service.leave(true);
    await t.time.wait(2_000);
    await t.expectShown(order);
  }),
  gap('DIA-8', 'a retained message changes nothing', ['screen'], async (t) => {
    const { service } = t;
    const order = t.order();
    const { line } = service;
    service.leave(true);
    await service.say(
      { notificationType: 'N17', amount: String(order.amount), qrCode: order.qrCode },
      { retain: true },
    );
    service.leave(false);
    try {
      await precondition('a box that comes back', () => t.expectBack(line));
      await t.expectNotShown(order);
    } finally {
      await service.say('', { retain: true });
    }
  }),
];

function certificate({ service }: DialectContext) {
  return { qrCode: service.answer.qrCertificate, name: `the box ${macDigits(service.identity.macAddr)}, for its app` };
}

/** Violations that the service saw in all checks; run after them. */
export const VIOLATION_CHECKS: readonly DialectCheck[] = [
  noViolation('VQD-1', 'logs in, reads and writes as boxes of the dialect do, without wildcards and QoS 2'),
  noViolation('VQD-2', 'its enrolments are right: topic, MAC address and checkSum'),
];
