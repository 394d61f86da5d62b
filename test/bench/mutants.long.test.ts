// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is how scenarios write variables
import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import QRCode from 'qrcode';
import { describe, expect, it } from 'vitest';
import { BoxClient } from '../../src/bench/engine/clients/box.ts';
import { GatewayClient } from '../../src/bench/engine/clients/gateway.ts';
import type { PartnerServer } from '../../src/bench/engine/clients/partner-server.ts';
import { runScenario } from '../../src/bench/engine/run/run.ts';
import type { Target } from '../../src/bench/engine/target.ts';
import { parseScenario } from '../../src/bench/scenarios/scenario.ts';
import { emulated, lyingProxy, mutant, SEED } from './setup.ts';

const HAPPY = resolve(import.meta.dirname, '../scenarios/happy-path.yaml');
const NOBODYS_QR = '00020101021238570010A00000072701270006970422011399999999990010208QRIBFTTA53037045802VN63041234';

/** Judges a product that does what `change` makes of it by the scenario of an order that is paid. */
async function judged(change: (target: Target) => Target | Promise<Target>) {
  const source = await readFile(HAPPY, 'utf8');
  // Time that is only waited for is skipped, but a lie is looked at until the end of it.
  const scenario = parseScenario(source.replaceAll('within: 20s', 'within: 11s'), 'happy-path.yaml');
  const options = { seed: SEED, updateGoldens: false, signal: new AbortController().signal, onStep: () => undefined };
  const { outcome, reason, where } = await runScenario(scenario, mutant(change), options);
  return { outcome, reason, line: source.split('\n')[Number(where?.split(':')[1] ?? 0) - 1]?.trim() };
}

/** The pages of a box through a server that changes them. */
function lyingBox(change: (path: string, body: Buffer) => Buffer | Promise<Buffer>) {
  return async (target: Target): Promise<Target> => {
    const [box] = target.boxes;
    if (box === undefined) throw new Error('no box');
    return { ...target, boxes: [new BoxClient(await lyingProxy(box.url, change), box)] };
  };
}

/** What the gateway tells of itself, through a server that changes it; the service is the real one. */
function lyingGateway(change: (path: string, body: string) => string) {
  return async (target: Target): Promise<Target> => {
    const { access } = target.gateway;
    const origin = await lyingProxy(access.origin, (path, body) => Buffer.from(change(path, String(body))));
    return { ...target, gateway: new GatewayClient({ ...access, origin }) };
  };
}

const shopWith = (target: Target, received: (real: PartnerServer) => PartnerServer['received']): Target => {
  const { partnerServer } = target;
  if (partnerServer === undefined) throw new Error('no partner server');
  return {
    ...target,
    partnerServer: {
      ...partnerServer,
      get received() {
        return received(partnerServer);
      },
    },
  };
};

describe('a product that is wrong', () => {
  it('the bench finds no fault in the product that its mutants begin with', async () => {
    expect(await judged((target) => target)).toEqual({ outcome: 'passed', reason: '', line: undefined });
  });

  it('the bench finds a box that shows a QR that pays somebody else', async () => {
    const swapped = await QRCode.toBuffer(NOBODYS_QR, { scale: 4 });
    let isShowing = false;
    const change = (path: string, body: Buffer) => {
      if (path === '/status') isShowing = String(body).includes('"state":"showing"');
      return path === '/screen.png' && isShowing ? swapped : body;
    };
    const { outcome, reason, line } = await judged(lyingBox(change));
    expect({ outcome, line }).toEqual({ outcome: 'failed', line: '- expect:' });
    expect(reason).toMatch(
      /^VVB000001: qr: expected "…?\d+A0.*, the screen has ".*9999999999.*they differ from character 16 on/,
    );
  });

  it('the bench finds a box that leaves the QR on the screen when the order is paid', async () => {
    let kept: Buffer | undefined;
    let isShowing = false;
    const change = (path: string, body: Buffer) => {
      if (path === '/status') isShowing = String(body).includes('"state":"showing"');
      if (path !== '/screen.png') return body;
      if (isShowing) kept = body;
      return kept ?? body;
    };
    const { outcome, reason } = await judged(lyingBox(change));
    expect(outcome).toBe('failed');
    expect(reason).toMatch(/^VVB000001: qr: expected none, the screen has "000201/);
  });

  it('the bench finds a box that shows another amount', async () => {
    const change = (path: string, body: Buffer) =>
      path === '/screen.txt' ? Buffer.from(String(body).replace('50.000', '5.000')) : body;
    expect((await judged(lyingBox(change))).reason).toMatch(/^VVB000001: text: expected "50\.000 ₫" on the screen/);
  });

  it('the bench finds a box that shows paid before there is money', async () => {
    const change = (path: string, body: Buffer) =>
      path === '/status' ? Buffer.from(String(body).replace('"state":"showing"', '"state":"paid"')) : body;
    expect(await judged(lyingBox(change))).toMatchObject({
      reason: 'VVB000001: state: expected "showing", is "paid", after 5s',
    });
  });

  it('the bench finds a box that stays on its paid screen', async () => {
    const change = (path: string, body: Buffer) =>
      path === '/screen.txt' ? Buffer.from(String(body).replace('Sẵn sàng thanh toán', 'Đã nhận')) : body;
    expect(await judged(lyingBox(change))).toMatchObject({ outcome: 'failed' });
  });

  it('the bench finds a gateway that answers SUCCESS although no box shows the order', async () => {
    const change = (path: string, body: string) =>
      path.startsWith('/_mock/orders') ? body.replace('"status":"shown"', '"status":"sending"') : body;
    expect((await judged(lyingGateway(change))).reason).toMatch(
      /^report: order B-.*\.status: expected "shown", is "sending"/,
    );
  });

  it('the bench finds a gateway that forgets the report of a payment', async () => {
    const change = (path: string, body: string) =>
      path.startsWith('/_mock/payments') ? body.replace(/"reportedAt":"[^"]+"/, '"reportedAt":null') : body;
    expect((await judged(lyingGateway(change))).reason).toMatch(/^report: VVB000001 has not reported payment /);
  });

  it('the bench finds a gateway that reports a callback that it never sent', async () => {
    const { reason, line } = await judged((target) => shopWith(target, () => []));
    expect(reason).toMatch(/^callback: 1 attempts were made, 0 reached the partner, /);
    expect(line).toBe('- expect:');
  });

  it('the bench finds a gateway that sends one callback more than it reports', async () => {
    const twice = (target: Target) => shopWith(target, ({ received }) => received.flatMap((it) => [it, it]));
    expect((await judged(twice)).reason).toMatch(/^callback: 1 attempts were made, 2 reached the partner, /);
  });

  it('the bench finds a gateway that sends the partner another amount', async () => {
    const change = (target: Target) =>
      shopWith(target, ({ received }) =>
        received.map((it) => ({ ...it, body: it.body.replace('"amount":50000', '"amount":5000') })),
      );
    expect((await judged(change)).reason).toMatch(/^callback\.amount: expected 50000, is 5000, /);
  });

  it('the bench finds a product that is not there', async () => {
    const kind = { ...emulated(), open: async () => Promise.reject(new Error('no gateway')) };
    const scenario = parseScenario('name: x\nsteps: [{ wait: 1s }]', 'x.yaml');
    const options = { seed: SEED, updateGoldens: false, signal: new AbortController().signal, onStep: () => undefined };
    expect(await runScenario(scenario, kind, options)).toMatchObject({
      outcome: 'missing',
      reason: 'the target did not start: no gateway',
    });
  });
});
