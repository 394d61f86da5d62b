import { describe, expect, it } from 'vitest';
import type { TargetKind } from '../../src/bench/engine/target.ts';
import { eventually, freePort } from '../support/net.ts';
import { type Answered, type TestControl, testServer } from './serve.ts';
import { emulated, sharedTarget } from './setup.ts';

const PASSES = { yaml: 'name: It passes\nsteps:\n  - expect: { screen: idle }\n', file: 'passes.yaml' };
const FAILS = { yaml: 'name: It fails\nsteps:\n  - expect: { state: paid, within: 1s }\n', file: 'fails.yaml' };
/** Looks at the screen again and again, without end. */
const ENDLESS = {
  yaml: 'name: Endless\nsteps:\n  - repeat: { times: 10000, steps: [{ expect: { screen: idle, for: 1min } }] }\n',
};

const OVER = ['passed', 'failed', 'skipped', 'missing', 'aborted'];

function untilOver({ ask }: TestControl, id: string): Promise<Answered['json']> {
  return eventually(`${id} is over`, async () => {
    const { json } = await ask('GET', `/runs/${id}`);
    return OVER.includes(String(json.state)) && json;
  });
}

/** Events of a whole stream. */
async function eventsOf(server: TestControl, id: string, headers: Record<string, string> = {}) {
  const { text } = await server.ask('GET', `/runs/${id}/events`, undefined, headers);
  return [...text.matchAll(/^id: (\d+)\nevent: (\w+)\ndata: (.*)$/gm)].map(([, number, event, data = '']) => {
    return { id: Number(number), event, data: JSON.parse(data) as Record<string, unknown> };
  });
}

/** A kind of target whose opening waits; what was opened is really closed. */
function gated(kind = emulated()): { kind: TargetKind; open(): void; origins: string[] } {
  const gate = Promise.withResolvers<void>();
  const origins: string[] = [];
  const open: TargetKind['open'] = async (need) => {
    await gate.promise;
    const target = await kind.open(need);
    origins.push(target.gateway.access.origin);
    return target;
  };
  return { kind: { ...kind, open }, open: gate.resolve, origins };
}

describe('runs', () => {
  it('runs are judged, reported while they go on, and at the end', async () => {
    const server = await testServer();
    const { ask } = server;
    const started = await ask('POST', '/runs', { scenarios: ['cancelled-order', FAILS], seed: 5 });
    expect(started.status).toBe(201);
    expect(started.headers.get('location')).toBe('/runs/run-1');
    expect(started.json).toMatchObject({ id: 'run-1', target: 'emulated', seed: 5 });
    for (const report of ['junit.xml', 'report.tap', 'report.html']) {
      expect(await ask('GET', `/runs/run-1/${report}`)).toMatchObject({ status: 409 });
    }
    const events = await eventsOf(server, 'run-1');
    expect(events.map(({ id }) => id)).toEqual(events.map((_, index) => index + 1));
    const told = events.filter(({ event }) => event !== 'step');
    expect(told.map(({ event }) => event)).toEqual(['begin', 'result', 'begin', 'result', 'end']);
    expect(events.find(({ event }) => event === 'step')?.data).toMatchObject({ number: 1 });
    const reason = 'VVB000001: state: expected "paid", is "idle", after 1s';
    expect(told[3]?.data).toMatchObject({ outcome: 'failed', name: 'It fails', reason, where: 'fails.yaml:3' });
    expect(told[4]?.data).toEqual({ state: 'failed' });

    const { json: run } = await ask('GET', '/runs/run-1');
    expect(run).toMatchObject({ state: 'failed', step: null, reason, where: 'fails.yaml:3' });
    expect(run.scenarios).toMatchObject([
      { state: 'passed', file: 'cancelled-order.yaml' },
      { state: 'failed', reason },
    ]);
    expect((await ask('GET', '/runs/run-1/junit.xml')).text).toContain('failures="1"');
    expect((await ask('GET', '/runs/run-1/report.tap')).text).toMatch(/^not ok 2 - It fails$/m);
    const page = await ask('GET', '/runs/run-1/report.html');
    expect(page.text).toContain('data:image/png;base64,');
    // The page brings a policy and a style of its own; the header must not take them away.
    expect(page.headers.get('content-security-policy')).toBe("frame-ancestors 'none'");

    const last = events.at(-1)?.id ?? 0;
    const rest = await eventsOf(server, 'run-1', { 'last-event-id': String(last - 1) });
    expect(rest.map(({ event }) => event)).toEqual(['end']);
    const after = await ask('GET', '/runs/run-1/events', undefined, { 'last-event-id': String(last) });
    expect(after.status).toBe(204);
  });

  it('runs without a target end as missing and as skipped', async () => {
    const server = await testServer();
    const nobody = { gateway: `http://127.0.0.1:${await freePort()}`, box: ['http://127.0.0.1:9'] };
    await server.ask('POST', '/runs', { scenarios: [PASSES], ...nobody });
    await server.ask('POST', '/runs', { scenarios: ['power-cut'] });
    expect(await untilOver(server, 'run-1')).toMatchObject({
      state: 'missing',
      target: 'at',
      reason: expect.stringMatching(/^nothing answers at/),
    });
    const skipped = await untilOver(server, 'run-2');
    expect(skipped).toMatchObject({
      state: 'skipped',
      reason: expect.stringMatching(/^target emulated cannot kill programs; /),
    });
  });

  it('runs are executed one at a time, and a limited number waits in order', async () => {
    const { kind, open } = gated(await sharedTarget());
    const server = await testServer({ kind: () => kind });
    const start = () => server.ask('POST', '/runs', { scenarios: [PASSES] });
    for (let n = 1; n <= 21; n += 1) expect(await start()).toMatchObject({ status: 201, json: { id: `run-${n}` } });
    const refused = await start();
    expect(refused).toMatchObject({ status: 429, json: { error: '20 runs wait already' } });
    expect(refused.headers.get('retry-after')).toBe('5');
    for (let n = 4; n <= 21; n += 1) {
      const { json } = await server.ask('DELETE', `/runs/run-${n}`);
      expect(json).toMatchObject({ state: 'aborted', scenarios: [{ state: 'aborted' }], tookMs: null });
    }
    const states = async () => {
      const { json } = await server.ask('GET', '/runs');
      const runs = json.runs as { id: string; state: string }[];
      return runs.filter(({ id }) => /-[123]$/.test(id)).map(({ state }) => state);
    };
    expect(await states()).toEqual(['running', 'queued', 'queued']);
    const follow = eventsOf(server, 'run-3');
    open();
    expect((await follow).map(({ event }) => event)).toEqual(['begin', 'step', 'result', 'end']);
    // The oldest of 21 that are over is forgotten.
    expect(await states()).toEqual(['passed', 'passed']);
    expect((await server.ask('DELETE', '/runs/run-2')).json).toMatchObject({ state: 'passed' });
  });

  it('a run that is aborted in the middle leaves nothing that answers', async () => {
    const { kind, open, origins } = gated();
    open();
    const server = await testServer({ kind: () => kind });
    await server.ask('POST', '/runs', { scenarios: [ENDLESS, PASSES] });
    await eventually('a step is under way', async () => (await server.ask('GET', '/runs/run-1')).json.step !== null);
    const aborted = await server.ask('DELETE', '/runs/run-1');
    expect(aborted).toMatchObject({ status: 200, json: { state: 'aborted', step: null } });
    expect(aborted.json.scenarios).toMatchObject([{ state: 'aborted' }, { state: 'aborted' }]);
    const junit = (await server.ask('GET', '/runs/run-1/junit.xml')).text;
    expect(junit).toContain('tests="2" failures="0" errors="2"');
    expect(junit).toContain('message="aborted by DELETE, before its verdict"');
    await expect(fetch(`${origins[0]}/healthz`)).rejects.toThrow();
    await server.ask('POST', '/runs', { scenarios: [PASSES] });
    expect(await untilOver(server, 'run-2')).toMatchObject({ state: 'passed' });
  });

  it('a run goes on when whoever follows it goes away', async () => {
    const { kind, open } = gated(await sharedTarget());
    const server = await testServer({ kind: () => kind });
    await server.ask('POST', '/runs', { scenarios: [PASSES] });
    const leaving = new AbortController();
    const stream = await fetch(`${server.origin}/runs/run-1/events`, { signal: leaving.signal });
    expect(stream.headers.get('content-type')).toBe('text/event-stream; charset=utf-8');
    leaving.abort();
    open();
    expect(await untilOver(server, 'run-1')).toMatchObject({ state: 'passed' });
  });

  it('the server keeps a limited number of runs, the newest', async () => {
    const server = await testServer();
    for (let n = 1; n <= 21; n += 1) {
      await server.ask('POST', '/runs', { scenarios: ['power-cut'] });
      await untilOver(server, `run-${n}`);
    }
    const { json } = await server.ask('GET', '/runs');
    const ids = (json.runs as { id: string }[]).map(({ id }) => id);
    expect(ids).toEqual(Array.from({ length: 20 }, (_, index) => `run-${index + 2}`));
    expect(await server.ask('GET', '/runs/run-1')).toMatchObject({
      status: 404,
      json: { error: 'there is no run run-1' },
    });
  });

  it('runs end with the server', async () => {
    const { kind, open, origins } = gated();
    open();
    const server = await testServer({ kind: () => kind });
    await server.ask('POST', '/runs', { scenarios: [ENDLESS] });
    await server.ask('POST', '/runs', { scenarios: [PASSES] });
    const follow = eventsOf(server, 'run-1');
    await eventually('a step is under way', async () => (await server.ask('GET', '/runs/run-1')).json.step !== null);
    await server.close();
    expect((await follow).at(-1)).toMatchObject({ event: 'end', data: { state: 'aborted' } });
    await expect(fetch(`${origins[0]}/healthz`)).rejects.toThrow();
    expect(origins).toHaveLength(1);
  });

  it.each([
    ['no body', undefined, /^body: expected/],
    ['no scenario', { scenarios: [] }, /^body: scenarios: expected/],
    ['a name that there is not', { scenarios: ['happy'] }, /^scenario happy: expected one of .*happy-path, /],
    [
      'the name of a file',
      { scenarios: ['../scenarios/happy-path.yaml'] },
      /^scenario \.\.\/scenarios.*: expected one of/,
    ],
    [
      'a text that is no scenario',
      { scenarios: [{ yaml: 'name: x\nsteps: [{ puch: {} }]' }] },
      /^scenario\.yaml:2:11: steps\.0: /,
    ],
    [
      'a file name with a folder',
      { scenarios: [{ yaml: 'x', file: '../x' }] },
      /^body: scenarios\.0\.file: expected a file name without a folder/,
    ],
    [
      'a picture of the machine',
      { scenarios: [{ yaml: 'name: x\nsteps: [{ expect: { golden: ../x.png } }]' }] },
      /: golden: a text/,
    ],
    ['an unknown key', { scenarios: [PASSES], taget: 'process' }, /^body: unknown key taget/],
    [
      'a target that there is not',
      { scenarios: [PASSES], target: 'moon' },
      /^--target moon: expected emulated, process or at/,
    ],
    [
      'a transport that there is not',
      { scenarios: [PASSES], transport: 'post' },
      /^--transport post: expected mqtt or http/,
    ],
    [
      'a box without a gateway',
      { scenarios: [PASSES], box: ['http://127.0.0.1:1'] },
      /^--gateway and --box belong to --target at/,
    ],
    ['a gateway without a box', { scenarios: [PASSES], gateway: 'http://127.0.0.1:1' }, /^--box is missing/],
    [
      'a probe that runs a command',
      { scenarios: [PASSES], probe: 'touch /tmp/x' },
      /^body: probe: expected one of screen/,
    ],
    ['a seed in words', { scenarios: [PASSES], seed: 'many' }, /^body: seed: expected/],
    [
      'an admin token on an open way',
      { scenarios: [PASSES], gateway: 'http://192.0.2.1', box: ['http://192.0.2.2'], adminToken: 'x' },
      /the admin token would be sent where others can read it/,
    ],
  ])('are refused with 422 for %s', async (_what, body, error) => {
    const { ask } = await testServer();
    expect(await ask('POST', '/runs', body)).toMatchObject({
      status: 422,
      json: { error: expect.stringMatching(error) },
    });
    expect((await ask('GET', '/runs')).json).toEqual({ runs: [] });
  });
});
