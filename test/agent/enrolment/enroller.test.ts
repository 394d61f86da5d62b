import { mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { Enroller } from '../../../src/device/agent/enrolment/enroller.ts';
import { enrolledSecret } from '../../../src/device/agent/enrolment/secret.ts';
import type { BoxEvent } from '../../../src/device/box/state.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { systemRandom } from '../../../src/lib/random.ts';
import { VirtualClock } from '../../../src/lib/virtual-clock.ts';
import { agreementKeyOf, boxProof, gatewayProof } from '../../../src/protocol/enrolment.ts';
import { admin } from '../../gateway/admin.ts';
import { type TestGateway, testGateway } from '../../gateway/harness.ts';
import { only } from '../../gateway/stage-records.ts';
import { loginStatus } from '../../support/asking-box.ts';
import { keptLog } from '../../support/kept-log.ts';
import { eventually, temporaryFolder } from '../../support/net.ts';

const BOX = { terminalCode: 'VVB000001', serialNumber: 'VVB900001' };
const ANSWER_TIMEOUT_MS = 10_000;
const EVE = agreementKeyOf(Buffer.alloc(32, 5).toString('base64url'));

type Enrolling = Extract<BoxEvent, { type: 'enrolling' }>;
type Json = Record<string, unknown>;

function enrollerAt(url: string) {
  const events: BoxEvent[] = [];
  const { log, lines } = keptLog();
  const clock = Object.assign({ byMs: 0 }, systemClock);
  clock.monotonicMs = () => systemClock.monotonicMs() + clock.byMs;
  // Polls are what these tests wait for, but an answer may take its time.
  let asked = 0;
  clock.sleep = (ms, signal) => {
    if (ms === ANSWER_TIMEOUT_MS) asked += 1;
    return systemClock.sleep(ms === ANSWER_TIMEOUT_MS ? ms : 20, signal);
  };
  const emit = (event: BoxEvent) => void events.push(event);
  const enroller = new Enroller({ clock, random: systemRandom, log, identity: BOX, at: { url }, emit });
  const stop = new AbortController();
  onTestFinished(() => stop.abort());
  const codes = () => events.filter((it): it is Enrolling => it.type === 'enrolling');
  const refusals = () => events.flatMap((it) => (it.type === 'refused' ? [it.reason] : []));
  const code = () => eventually('a code', () => codes().at(-1)?.code);
  /** The code that a person can read now: each of the events takes the place of the one before. */
  const shown = () => events.map((it) => (it.type === 'enrolling' ? it.code : undefined)).at(-1);
  return {
    enroller,
    run: () => enroller.run(stop.signal),
    stop,
    clock,
    log,
    codes,
    code,
    shown,
    refusals,
    asked: () => asked,
    logged: () => JSON.stringify(lines),
  };
}

const gatewayOf = (config: object = {}) => testGateway({ config: { boxes: [BOX], ...config } });

async function accept(gateway: TestGateway, code: string): Promise<number> {
  const answer = await fetch(`${gateway.origin}/_mock/enrolments/${BOX.terminalCode}/accept`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ code }),
  });
  return answer.status;
}

/** Somebody on the way to the gateway, who may change what is asked and what is answered, or answer that there is nothing. */
async function between(
  gateway: TestGateway,
  change: { asked?: (it: Json) => Json; answered?: (it: Json) => Json | undefined },
) {
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const text = Buffer.concat(chunks).toString();
    const body = text === '' ? undefined : JSON.stringify((change.asked ?? ((it) => it))(JSON.parse(text) as Json));
    const { method = 'GET', url = '' } = request;
    const headers = { 'content-type': 'application/json' };
    const init = body === undefined ? { method } : { method, body, headers };
    const answer = await fetch(`${gateway.origin}${url}`, init).catch(() => undefined);
    // The test is over, and its gateway with it.
    if (answer === undefined) return response.destroy();
    const json = (await answer.json()) as Json;
    const told = (change.answered ?? ((it) => it))(json);
    response.writeHead(told === undefined ? 404 : answer.status, headers).end(JSON.stringify(told ?? {}));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
    server.closeAllConnections();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

describe('a box without a secret', () => {
  it('ENR-1 ENR-4 ENR-5 a box without a secret shows a code, and has the secret of its gateway once an admin accepts it', async () => {
    const gateway = await gatewayOf();
    const box = enrollerAt(gateway.origin);
    const running = box.run();
    const code = await box.code();
    expect(box.codes()).toEqual([
      { type: 'enrolling', code, url: `${gateway.origin}/#enrol/VVB000001/${code}`, expiresInMs: expect.any(Number) },
    ]);
    expect(box.codes()[0]?.expiresInMs).toBeGreaterThan(590_000);
    expect(await accept(gateway, code)).toBe(200);
    const secret = (await running) ?? '';
    expect(await loginStatus(gateway.origin, BOX.terminalCode, secret)).toBe(200);
    expect(box.codes()).toHaveLength(1);
    for (const hidden of [secret, code]) expect(box.logged()).not.toContain(hidden);
  });

  it('ENR-1 a box shows another code with another key when the first has expired', async () => {
    const gateway = await gatewayOf();
    const box = enrollerAt(gateway.origin);
    const running = box.run();
    const first = await box.code();
    box.clock.byMs = 600_001;
    const second = await eventually('another code', () => box.codes()[1]?.code);
    expect(second).not.toBe(first);
    expect(await accept(gateway, second)).toBe(200);
    expect(await loginStatus(gateway.origin, BOX.terminalCode, (await running) ?? '')).toBe(200);
  });

  it('ENR-4 a box learns that it was accepted at the very end of its code, however long it could not ask', async () => {
    const gateway = await gatewayOf();
    let isHeld = false;
    const hold = (it: Json) => (isHeld && 'state' in it ? { state: 'pending' } : it);
    const box = enrollerAt(await between(gateway, { answered: hold }));
    const running = box.run();
    const code = await box.code();
    isHeld = true;
    expect(await accept(gateway, code)).toBe(200);
    isHeld = false;
    box.clock.byMs = 600_001;
    expect(await loginStatus(gateway.origin, BOX.terminalCode, (await running) ?? '')).toBe(200);
    expect(box.codes()).toHaveLength(1);
  });

  it('ENR-1 a box keeps its code over a restart of the enrolment, and logs once what is wrong', async () => {
    const gateway = await gatewayOf();
    let isAway = false;
    const url = await between(gateway, { answered: (it) => (isAway ? { away: 1 } : it) });
    const box = enrollerAt(url);
    const runFor = async (isDone: () => boolean) => {
      const stop = new AbortController();
      const running = box.enroller.run(stop.signal);
      await eventually('the end of a run', isDone);
      stop.abort();
      await running;
    };
    await runFor(() => box.codes().length === 1);
    await runFor(() => box.codes().length === 2);
    expect(box.codes()[1]?.code).toBe(box.codes()[0]?.code);
    expect(box.logged().match(/"enrolment-started"/g)).toHaveLength(1);
    isAway = true;
    await runFor(() => box.logged().includes('enrolment-failed'));
    const asked = box.asked();
    await runFor(() => box.asked() > asked + 1);
    expect(box.logged().match(/enrolment-failed/g)).toHaveLength(1);
  });

  it('ENR-3 a box shows another code when an admin rejected the first', async () => {
    const gateway = await gatewayOf();
    const box = enrollerAt(gateway.origin);
    const running = box.run();
    await box.code();
    await fetch(`${gateway.origin}/_mock/enrolments/${BOX.terminalCode}/reject`, { method: 'POST' });
    const second = await eventually('another code', () => box.codes()[1]?.code);
    await accept(gateway, second);
    expect(await running).toBeDefined();
  });

  it('ENR-4 THR-24 a box replaces its code when the gateway does not know its request any more', async () => {
    const gateway = await gatewayOf();
    const [keys, proofs] = [new Set<unknown>(), new Set<unknown>()];
    const note = (it: Json) => {
      keys.add(it.publicKey);
      proofs.add(it.proof);
      return it;
    };
    let [forgets, isShut] = [false, false];
    const url = await between(gateway, {
      asked: note,
      answered: (it) => (forgets && 'state' in it ? undefined : isShut && 'id' in it ? { full: true } : it),
    });
    const box = enrollerAt(url);
    const running = box.run();
    const first = await box.code();
    [forgets, isShut] = [true, true];
    // Nothing is shown in its place before the gateway has taken that.
    await eventually('no code on the screen', () => box.shown() === undefined);
    await eventually('another request', () => keys.size === 2 && proofs.size === 2);
    expect(box.codes()).toHaveLength(1);
    [forgets, isShut] = [false, false];
    const second = await eventually('another code', () => box.shown());
    expect(second).not.toBe(first);
    expect(await accept(gateway, second)).toBe(200);
    expect(await running).toBeDefined();
  });

  it('ENR-1 a box shows its code only while the gateway answers that it can be accepted', async () => {
    const gateway = await gatewayOf();
    let isAway = false;
    const box = enrollerAt(await between(gateway, { answered: (it) => (isAway ? { away: 1 } : it) }));
    const running = box.run();
    const code = await box.code();
    isAway = true;
    await eventually('no code on the screen', () => box.shown() === undefined);
    isAway = false;
    expect(await eventually('the code again', () => box.shown())).toBe(code);
    expect(await accept(gateway, code)).toBe(200);
    expect(await running).toBeDefined();
  });

  it('ENR-8 a box accepts an open gateway on its own machine, and shows no code', async () => {
    const gateway = await gatewayOf({ enrolment: 'open' });
    const box = enrollerAt(gateway.origin);
    expect(await loginStatus(gateway.origin, BOX.terminalCode, (await box.run()) ?? '')).toBe(200);
    expect(box.codes()).toEqual([]);
  });

  it('ENR-2 a box says why a gateway does not enrol it, and asks again', async () => {
    const gateway = await gatewayOf({ enrolment: 'closed' });
    const box = enrollerAt(gateway.origin);
    void box.run();
    await eventually('refusals', () => box.refusals().length > 2);
    expect(box.refusals()[0]).toContain('ENROLMENT_CLOSED');
    expect(box.codes()).toEqual([]);
    expect(box.logged().match(/enrolment-failed/g)).toHaveLength(1);
  });

  it('REG-6 a disabled box says so and asks again, and shows its code once it is enabled', async () => {
    const gateway = await gatewayOf({ registry: 'store' });
    const box = enrollerAt(gateway.origin);
    await admin(gateway, 'POST', `boxes/${BOX.terminalCode}/disable`);
    void box.run();
    await eventually('refusals', () => box.refusals().length > 2);
    expect(box.refusals()[0]).toContain('BOX_DISABLED');
    await admin(gateway, 'POST', `boxes/${BOX.terminalCode}/enable`);
    await eventually('its code', () => box.codes().length === 1);
  });

  it.each([
    ['an endless one', (send: (text: string) => void) => send('x'.repeat(10_000))],
    ['one that is no JSON', (send: (text: string) => void) => send('<html>')],
    ['one with another id', (send: (text: string) => void) => send('{"id":"../../_mock"}')],
  ])('waits through an answer that is none: %s', async (_what, answer) => {
    const server = createServer((_request, response) => answer((text) => response.writeHead(201).end(text)));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onTestFinished(() => void server.close());
    const box = enrollerAt(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
    const running = box.run();
    await eventually('a failure', () => box.logged().includes('enrolment-failed'));
    box.stop.abort();
    expect(await running).toBeUndefined();
    expect(box.codes()).toEqual([]);
  });
});

describe('somebody on the way', () => {
  it('ENR-4 THR-25 an attacker who puts his key in the place of both keys is refused by box and gateway', async () => {
    const gateway = await gatewayOf();
    const swap = (it: Json) => ('publicKey' in it ? { ...it, publicKey: EVE.publicKey } : it);
    const box = enrollerAt(await between(gateway, { asked: swap, answered: swap }));
    void box.run();
    expect(await accept(gateway, await box.code())).toBe(400);
    expect((await gateway.mock<{ hasSecret: boolean }[]>('/boxes'))[0]?.hasSecret).toBe(false);
  });

  it.each([
    ['his key, and the proof as it was', {}],
    ['his key, and a proof without the code', { code: '' }],
    ['his key, and a proof with a guessed code', { code: '0000-0000-0000' }],
  ])('ENR-4 cannot answer in the place of the gateway: %s', async (_what, { code }: { code?: string }) => {
    const gateway = await gatewayOf();
    let boxKey = '';
    const asked = (it: Json) => {
      boxKey = String(it.publicKey);
      return it;
    };
    const answered = (it: Json) => {
      if (it.state === undefined) return it;
      const made = code === undefined ? it.proof : gatewayProof(code, { ...BOX, boxKey, gatewayKey: EVE.publicKey });
      return {
        state: 'accepted',
        how: 'code',
        publicKey: EVE.publicKey,
        proof: made ?? boxProof('', { ...BOX, boxKey }),
      };
    };
    const box = enrollerAt(await between(gateway, { asked, answered }));
    const running = box.run();
    await eventually('a refusal', () => box.refusals().length > 0);
    expect(box.refusals()[0]).toContain("not the gateway's");
    box.stop.abort();
    expect(await running).toBeUndefined();
  });

  it('ENR-8 an attacker cannot make a box believe an open gateway that is not on its own machine', async () => {
    const gateway = await gatewayOf({ enrolment: 'open' });
    const { port } = new URL(gateway.origin);
    // The name is this machine's own here, but nothing that a box takes for it.
    const box = enrollerAt(`http://0.0.0.0:${port}`);
    void box.run();
    await eventually('a refusal', () => box.refusals().length > 0);
    expect(box.refusals()[0]).toContain('on this machine only');
  });
});

describe('the secret that was agreed on', () => {
  const [ONE, TWO] = ['A'.repeat(43), 'B'.repeat(43)];
  const secretIn = async (dataDir: string, ...agreed: string[]) => {
    let runs = 0;
    const { log, lines } = keptLog();
    const run = async () => agreed[runs++];
    const secret = enrolledSecret({ clock: systemClock, log, dataDir, enroller: only<Enroller>({ run }) });
    return { secret, lines, runs: () => runs, get: () => secret.get(new AbortController().signal) };
  };

  it('ENR-5 the enrolled secret is in a file for its owner only, and is used at the next start', async () => {
    const dataDir = join(await temporaryFolder(), 'box');
    const first = await secretIn(dataDir, ONE);
    expect([await first.get(), await first.get(), first.runs()]).toEqual([ONE, ONE, 1]);
    const file = join(dataDir, 'secret');
    expect([await readFile(file, 'utf8'), (await stat(file)).mode & 0o777]).toEqual([`${ONE}\n`, 0o600]);
    const next = await secretIn(dataDir, TWO);
    expect([await next.get(), next.runs()]).toEqual([ONE, 0]);
    expect(next.lines).toEqual([]);
  });

  it('ENR-6 the enrolled secret is replaced when the gateway refuses it, and kept until there is another', async () => {
    const dataDir = await temporaryFolder();
    await writeFile(join(dataDir, 'secret'), `${ONE}\n`, { mode: 0o644 });
    const box = await secretIn(dataDir);
    expect(await box.get()).toBe(ONE);
    box.secret.refused();
    expect([await box.get(), box.runs()]).toEqual([ONE, 1]);
    expect([await box.get(), box.runs()]).toEqual([ONE, 1]);
    const again = await secretIn(dataDir, TWO);
    await again.get();
    again.secret.refused();
    expect([await again.get(), await readFile(join(dataDir, 'secret'), 'utf8')]).toEqual([TWO, `${TWO}\n`]);
    expect((await stat(join(dataDir, 'secret'))).mode & 0o777).toBe(0o600);
  });

  it.each(['', 'short', `${'A'.repeat(43)}\n${'B'.repeat(43)}\n`])(
    'ENR-5 is agreed on anew where the file holds none: %j',
    async (content) => {
      const dataDir = await temporaryFolder();
      await writeFile(join(dataDir, 'secret'), content);
      const box = await secretIn(dataDir, TWO);
      expect([await box.get(), box.runs()]).toEqual([TWO, 1]);
      expect(JSON.stringify(box.lines)).toContain('secret-unreadable');
    },
  );

  it('ENR-5 the enrolled secret is stored as soon as the disk has room for it', async () => {
    const dataDir = join(await temporaryFolder(), 'a-file');
    await writeFile(dataDir, '');
    const clock = new VirtualClock();
    const { log, lines } = keptLog();
    const secret = enrolledSecret({ clock, log, dataDir, enroller: only<Enroller>({ run: async () => ONE }) });
    const stop = new AbortController();
    onTestFinished(() => stop.abort());
    expect(await secret.get(stop.signal)).toBe(ONE);
    await clock.advance(120_000);
    await rm(dataDir);
    await eventually('the file', async () => {
      await clock.advance(20_000);
      return (await readFile(join(dataDir, 'secret'), 'utf8').catch(() => '')) === `${ONE}\n`;
    });
    expect(JSON.stringify(lines).match(/secret-not-stored/g)).toHaveLength(1);
  });

  it('ENR-5 the enrolled secret is used once its disk is mounted, however late after the start', async () => {
    const dataDir = join(await temporaryFolder(), 'not-mounted');
    const clock = new VirtualClock();
    const run = (signal: AbortSignal) => clock.sleep(3_600_000, signal).then(() => undefined);
    const { log, lines } = keptLog();
    const secret = enrolledSecret({ clock, log, dataDir, enroller: only<Enroller>({ run }) });
    const stop = new AbortController();
    onTestFinished(() => stop.abort());
    let known: string | undefined;
    const getting = secret.get(stop.signal).then((it) => {
      known = it;
    });
    await clock.advance(59_000);
    await mkdir(dataDir);
    await writeFile(join(dataDir, 'secret'), `${ONE}\n`);
    await eventually('the secret of the disk', async () => {
      await clock.advance(1_000);
      return known === ONE;
    });
    await getting;
    expect(lines).toEqual([]);
  });

  it('ENR-5 an unreadable secret is read again and again, but logged once with the reason', async () => {
    const dataDir = await temporaryFolder();
    await writeFile(join(dataDir, 'secret'), 'none');
    const clock = new VirtualClock();
    let runs = 0;
    const run = async (signal: AbortSignal) => {
      runs += 1;
      await clock.sleep(3_600_000, signal);
      return undefined;
    };
    const { log, lines } = keptLog();
    const secret = enrolledSecret({ clock, log, dataDir, enroller: only<Enroller>({ run }) });
    const stop = new AbortController();
    const getting = secret.get(stop.signal);
    await eventually('three runs', async () => {
      await clock.advance(20_000);
      return runs === 3;
    });
    stop.abort();
    expect(await getting).toBeUndefined();
    expect(JSON.stringify(lines).match(/secret-unreadable/g)).toHaveLength(1);
  });

  it('ENR-5 the enrolled secret is used although the disk cannot store it, and the log says so', async () => {
    const dataDir = join(await temporaryFolder(), 'a-file');
    await writeFile(dataDir, '');
    const box = await secretIn(dataDir, ONE);
    expect([await box.get(), await box.get()]).toEqual([ONE, ONE]);
    expect(JSON.stringify(box.lines)).toContain('secret-not-stored');
    expect(JSON.stringify(box.lines)).not.toContain(ONE);
  });
});
