import type { AddressInfo } from 'node:net';
import { describe, expect, it, onTestFinished } from 'vitest';
import { BoxClient } from '../../src/bench/engine/clients/box.ts';
import { VirtualTime } from '../../src/bench/engine/test-time.ts';
import { BOX_CHECKS } from '../../src/bench/judges/box/checks/all.ts';
import { ScriptedGateway } from '../../src/bench/judges/box/gateway/scripted-gateway.ts';
import { type BoxNeed, type BoxSubject, waitForHello } from '../../src/bench/judges/box/subject.ts';
import { seededRandom } from '../../src/lib/random.ts';
import { troubles, verdictsOn } from './box-fixture.ts';
import { IndependentBox } from './independent/box.ts';
import { openPages } from './independent/pages.ts';
import type { Json } from './independent/signed-session.ts';

const IDENTITY = { terminalCode: 'VVB000001', serialNumber: 'VVB900001', secret: 'Sample-secret-of-this-test-8' };
const PLACE = { host: '127.0.0.1', mqttPort: 0, httpPort: 0 };

/** Needs that this box does not meet. */
const NOT_THERE: readonly BoxNeed[] = ['faults', 'http', 'tls'];

/** The box of the folder `independent`, with its gateway. */
async function subjectOf(): Promise<BoxSubject> {
  const time = new VirtualTime();
  const gateway = await ScriptedGateway.open(PLACE, IDENTITY, { clock: time.clock, random: seededRandom(3) });
  const disk: Json[] = [];
  let box: IndependentBox;
  const start = () => {
    box = new IndependentBox(`mqtt://127.0.0.1:${gateway.mqtt.port}`, IDENTITY, time.clock, disk);
    void box.run();
  };
  const see = async () => {
    const { qr, text } = box.counter.screen;
    return { file: Buffer.from(`${qr} ${text}`), picture: { width: 1, height: 1, data: new Uint8Array(4) }, qr };
  };
  start();
  const server = await openPages(IDENTITY, () => box.counter);
  const pages = new BoxClient(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, IDENTITY);
  onTestFinished(async () => {
    box.pullPlug();
    server.close();
    server.closeAllConnections();
    await gateway.close();
    time.close();
  });
  await waitForHello(gateway, { time, withinMs: 60_000, signal: new AbortController().signal });
  const controls: BoxSubject['controls'] = {
    see,
    pages,
    isFirstStart: true,
    restart: async () => {
      controls.isFirstStart = false;
      box.pullPlug();
      start();
    },
    close: async () => undefined,
  };
  return { identity: IDENTITY, time, gateway, controls };
}

describe('a box that was written from PROTOCOL.md alone', () => {
  it('a box written from PROTOCOL.md alone passes every check over MQTT without faults to order (SIG-1, MSG-1, AGT-1)', async () => {
    const checks = BOX_CHECKS.filter(({ needs = [] }) => !needs.some((need) => NOT_THERE.includes(need)));
    const results = await verdictsOn(await subjectOf(), [], checks);
    // It has no voice.
    expect(troubles(results).filter((it) => !it.includes('the box does not tell what it says aloud'))).toEqual([]);
    expect(results.length).toBeGreaterThan(110);
  }, 240_000);
});
