import { request } from 'node:http';
import { connectAsync } from 'mqtt';
import { describe, expect, it, onTestFinished } from 'vitest';
import { realTime, VirtualTime } from '../../src/bench/engine/test-time.ts';
import { BOX_CHECKS } from '../../src/bench/judges/box/checks/all.ts';
import { PUSH_CHECKS } from '../../src/bench/judges/box/checks/pushes.ts';
import { ScriptedGateway } from '../../src/bench/judges/box/gateway/scripted-gateway.ts';
import { type BoxSubject, waitForHello } from '../../src/bench/judges/box/subject.ts';
import { seededRandom } from '../../src/lib/random.ts';
import { LIMITS } from '../../src/protocol/fields.ts';
import { BOX_PATHS, BOX_SESSION_HEADER } from '../../src/protocol/http-api.ts';
import { loginOf } from '../../src/protocol/keys.ts';
import { boxTopic } from '../../src/protocol/topics.ts';
import { eventually } from '../support/net.ts';
import { brokenClauses, judge, judgeTwo, verdictsOn } from './box-fixture.ts';

const IDENTITY = { terminalCode: 'VVB000001', serialNumber: 'VVB900001', secret: 'a secret of this test' };
const PLACE = { host: '127.0.0.1', mqttPort: 0, httpPort: 0 };
const SESSION = '6f1f0a52-2f3c-4f0e-9a57-3d1f5b0d9c11';
const never = new AbortController().signal;

/** A gateway that judges, on a clock that skips what is only waited for. */
async function stage() {
  const time = new VirtualTime();
  const gateway = await ScriptedGateway.open(PLACE, IDENTITY, { clock: time.clock, random: seededRandom(1) });
  onTestFinished(async () => {
    await gateway.close();
    time.close();
  });
  const subject: BoxSubject = {
    identity: IDENTITY,
    time,
    gateway,
    controls: { close: async () => undefined },
  };
  const come = (withinMs = 60_000) => waitForHello(gateway, { time, withinMs, signal: never });
  return { gateway, subject, come };
}

function connect(port: number, username = IDENTITY.terminalCode) {
  const password = loginOf(IDENTITY.secret);
  return connectAsync(`mqtt://127.0.0.1:${port}`, { username, password, reconnectPeriod: 0 });
}

describe('what is no box', () => {
  it('the judge names each sort of garbage over MQTT', async () => {
    const { gateway, subject, come } = await stage();
    const client = await connect(gateway.mqtt.port);
    const up = boxTopic(IDENTITY.terminalCode, 'up');
    await client.publishAsync(boxTopic(IDENTITY.terminalCode, 'presence'), 'here', { qos: 0 });
    for (const bytes of ['', 'hello', Buffer.from([0, 255, 10]), '{"type":"hello"}', 'x'.repeat(20_000)]) {
      await client.publishAsync(up, bytes, { qos: 1 });
    }
    await client.publishAsync(up, 'a', { qos: 0, retain: true });
    await expect(client.subscribeAsync('#')).rejects.toThrow();
    await eventually('all of it', () => gateway.log.violations.some(({ what }) => what.includes('#')));
    await come();
    const results = await verdictsOn(subject, ['http']);
    expect(brokenClauses(results)).toEqual(['LIM-4', 'PRE-1', 'SIG-1', 'TOP-1', 'TOP-3']);
    expect(results.filter(({ outcome }) => outcome === 'passed')).toEqual([]);
    await client.endAsync(true);
  });

  it('the judge names each sort of garbage over HTTP', async () => {
    const { gateway, subject, come } = await stage();
    const origin = `http://127.0.0.1:${gateway.http.port}`;
    const basic = Buffer.from(`${IDENTITY.terminalCode}:${loginOf(IDENTITY.secret)}`).toString('base64');
    const headers = { authorization: `Basic ${basic}`, [BOX_SESSION_HEADER]: SESSION };
    const stream = request(`${origin}${BOX_PATHS.stream}`, { headers }).on('error', () => undefined);
    const opened = new Promise((resolve) => stream.once('response', resolve));
    stream.end();
    await opened;
    const post = async (path: string, body: string, more: Record<string, string> = {}) => {
      const sent = { method: 'POST', headers: { ...headers, 'content-type': 'application/jose', ...more }, body };
      return (await fetch(`${origin}${path}`, sent)).status;
    };
    expect(await post(BOX_PATHS.messages, 'garbage')).toBe(400);
    expect(await post(BOX_PATHS.messages, '{}', { 'content-type': 'application/json' })).toBe(400);
    expect(await post(BOX_PATHS.messages, 'x'.repeat(LIMITS.messageBytesMax + 1))).toBe(413);
    expect(await post('/box/v1/else', '')).toBe(404);
    expect(await post(BOX_PATHS.messages, 'x', { [BOX_SESSION_HEADER]: 'none' })).toBe(400);
    expect(await post(BOX_PATHS.messages, 'x', { [BOX_SESSION_HEADER]: crypto.randomUUID() })).toBe(409);
    expect(await post(BOX_PATHS.messages, 'x', { authorization: 'Basic AAAA' })).toBe(401);
    await come();
    const results = await verdictsOn(subject, ['mqtt']);
    expect(brokenClauses(results)).toEqual(['BOX-HTTP-1', 'BOX-HTTP-2', 'LIM-4', 'SIG-1']);
    stream.destroy();
  });

  it('the judge refuses a box under the name of another', async () => {
    const { gateway, come } = await stage();
    await expect(connect(gateway.mqtt.port, 'VVB000009')).rejects.toThrow();
    await expect(come(1_000)).rejects.toThrow(
      /within 1 s: a login was refused: it calls itself VVB000009, not VVB000001/,
    );
  });

  it('the judge reports a box that connects and sends nothing', async () => {
    const { gateway, come } = await stage();
    const client = await connect(gateway.mqtt.port);
    await expect(come(1_000)).rejects.toThrow(/VVB000001 logged in, but has not said hello/);
    await client.endAsync(true);
  });
});

describe('two boxes of one name', () => {
  it('the judge reports two boxes of one name, and does not judge one of them', async () => {
    const results = await judgeTwo();
    expect(results.findLast(({ outcome }) => outcome !== 'skipped')?.outcome).toBe('missing');
    const why = results.map(({ reason }) => reason).filter((reason) => /two boxes/.test(reason));
    expect(why[0]).toBe('two boxes speak as VVB000001, with different keys: turn one of them off');
    expect(results.filter(({ outcome }) => outcome === 'failed')).toEqual([]);
  });
});

describe('a screen that cannot be seen', () => {
  it('the judge of a box whose screen it cannot see names the checks that need it, and judges the rest', async () => {
    const probe = { name: 'broken', capture: () => Promise.reject(new Error('the camera is not there')) };
    const isBlind = (needs: readonly string[] = []) => needs.includes('screen');
    const checks = [
      ...BOX_CHECKS.filter(({ needs }) => isBlind(needs)),
      ...PUSH_CHECKS.filter(({ needs }) => !isBlind(needs)),
    ];
    const results = await judge({ breaks: [] }, { probe, without: ['restart', 'slow'], checks });
    expect(brokenClauses(results)).toEqual([]);
    const blind = results.filter(({ reason }) => reason === 'the screen cannot be seen: the camera is not there');
    expect(blind.length).toBeGreaterThan(6);
    expect(blind.every(({ outcome }) => outcome === 'skipped')).toBe(true);
  });
});

describe('a port that is taken', () => {
  it.each(['--mqtt-port', '--http-port'] as const)('is named by its option, %s', async (option) => {
    const { gateway } = await stage();
    const taken = option === '--mqtt-port' ? { mqttPort: gateway.mqtt.port } : { httpPort: gateway.http.port };
    const deps = { clock: realTime.clock, random: seededRandom(2) };
    await expect(ScriptedGateway.open({ ...PLACE, ...taken }, IDENTITY, deps)).rejects.toThrow(
      new RegExp(`^${option}: port \\d+ is already in use`),
    );
  });
});
