import { type AddressInfo, createServer, type Socket } from 'node:net';
import { Aedes } from 'aedes';
import { connectAsync } from 'mqtt';
import { describe, expect, it, onTestFinished } from 'vitest';
import type { FirmwareBox } from '../../support/firmware-box.ts';
import { writeMosquittoConfig } from '../../support/mosquitto.ts';
import { eventually, freePort, temporaryFolder } from '../../support/net.ts';
import { run } from '../../support/processes.ts';
import { findProgram, PROGRAMS, without } from '../../support/programs.ts';
import { order, partnerServer, processed, qrFor, type TestGateway } from '../harness.ts';
import { dialectGateway, firmware, LOGIN, TO_IT, VIETQR, VIETQR_BOX } from './support.ts';

const { missing, note } = without(PROGRAMS.mosquitto);
const GATEWAY_PASSWORD = 'sample-gateway-secret';

async function startMosquitto() {
  const folder = await temporaryFolder();
  const port = await freePort();
  const logins = { gateway: GATEWAY_PASSWORD, [VIETQR.login.username]: VIETQR.login.password, monitor: 'sample' };
  const broker = run(findProgram(PROGRAMS.mosquitto) ?? '', ['-c', await writeMosquittoConfig(folder, port, logins)]);
  await eventually('Mosquitto', () => broker.output().includes(' running'));
  return { url: `mqtt://127.0.0.1:${port}` };
}

async function shop(url: string, dataDir?: string) {
  const partner = await partnerServer(processed);
  const mqtt = { url, username: 'gateway', password: GATEWAY_PASSWORD };
  const options = { callback: { url: partner.url }, dataDir: dataDir ?? (await temporaryFolder()), config: { mqtt } };
  return { gateway: await dialectGateway(options), options };
}

const isOnline = async (gateway: TestGateway) =>
  (await gateway.mock<{ online: boolean }>(`/boxes/${VIETQR_BOX.terminalCode}`)).online;
const online = (gateway: TestGateway, box: FirmwareBox) =>
  eventually('the box', async () => box.screen.kind !== 'certificate' && (await isOnline(gateway)));

/** As RabbitMQ 3.10 and NATS 2.9: a broker that knows MQTT 3.1.1 only, and tells nobody who listens. */
async function olderBroker(refuse: (socket: Socket) => void): Promise<string> {
  const aedes = await Aedes.createBroker();
  const versions: number[] = [];
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('readable', () => {
      const packet: Buffer | null = socket.read();
      // The level of the protocol stands behind its name.
      const version = packet?.[packet.indexOf('MQTT') + 4] ?? 0;
      versions.push(version);
      if (packet !== null && version < 5) {
        socket.unshift(packet);
        aedes.handle(socket);
      } else {
        refuse(socket);
      }
    });
  });
  onTestFinished(() => {
    expect(versions).toContain(5);
    aedes.close();
    server.close();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return `mqtt://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

it.each<[how: string, refuse: (socket: Socket) => void]>([
  ['ends the connection', (socket) => socket.destroy()],
  ['refuses the version', (socket) => socket.end(Buffer.of(0x20, 2, 0, 1))],
])(
  'VQD-5 a broker that knows no MQTT 5 and %s serves boxes too, and the log says what it cannot tell',
  async (_how, refuse) => {
    const url = await olderBroker(refuse);
    const { gateway } = await shop(url);
    expect(gateway.logged('listeners-not-reported')).toHaveLength(1);
    const box = firmware({ mqttUrl: url });
    await online(gateway, box);
    expect((await gateway.sendQr(TO_IT)).status).toBe(200);
    await gateway.testCallback();
    await eventually('the payment', () => box.spoken.length > 0);
    expect(box.types()).toEqual(['N16', 'N17', 'N05']);
  },
);

describe.skipIf(missing)(`boxes of the dialect at a broker of one's own${note}`, () => {
  it('VQD-1 VQD-3 VQD-5 VQD-6 boxes of the dialect at another broker are served from enrolment to payment and cancellation', async () => {
    const { url } = await startMosquitto();
    const { gateway } = await shop(url);
    const box = firmware({ mqttUrl: url });
    await online(gateway, box);
    expect((await gateway.sendQr(TO_IT)).body).toEqual({ status: 'SUCCESS', message: '' });
    await eventually('the QR', () => box.screen.kind === 'dynamic');
    expect(box.screen.qrCode).toBe(qrFor());
    await gateway.testCallback();
    await eventually('the payment', () => box.spoken.length > 0);
    await gateway.sendQr({ ...TO_IT, orderId: 'DH002', content: 'DH002', qrCode: qrFor({ purpose: 'DH002' }) });
    await gateway.mock('/orders/DH002/cancel', 'POST');
    await eventually('the idle screen', () => box.types().at(-1) === 'N12');
    expect(box.types()).toEqual(['N16', 'N17', 'N05', 'N17', 'N12']);
    expect(box.dropped).toEqual([]);
    expect(gateway.logged('listeners-not-reported')).toEqual([]);
  });

  it('VQD-5 boxes of the dialect are offline once the broker finds nobody on their topic, and found by the next run of the gateway', async () => {
    const { url } = await startMosquitto();
    const { gateway, options } = await shop(url);
    const box = firmware({ mqttUrl: url });
    await online(gateway, box);
    await gateway.sendQr(TO_IT);
    await eventually('the QR', () => box.screen.kind === 'dynamic');
    await gateway.close();
    const next = await dialectGateway(options);
    await eventually('the QR again', () => box.types().filter((it) => it === 'N17').length === 2);
    expect(box.types()).toEqual(['N16', 'N17', 'N16', 'N17']);
    await eventually('online', () => isOnline(next));
    await box.stop();
    const later = { ...TO_IT, orderId: 'DH002', content: 'DH002', qrCode: qrFor({ purpose: 'DH002' }) };
    expect((await next.sendQr(later)).body.message).toBe('BOX_OFFLINE');
    await next.testCallback({ content: 'AWAY' });
    expect(await isOnline(next)).toBe(false);
    const back = firmware({ mqttUrl: url });
    await eventually('the payment', () => back.spoken.length > 0);
    await online(next, back);
    expect(back.spoken).toEqual([expect.stringContaining('AWAY')]);
  });

  it('VQD-5 boxes of the dialect count as connected from their enrolment on where somebody reads all topics, and the log says so', async () => {
    const { url } = await startMosquitto();
    const spy = await connectAsync(url, LOGIN, false);
    onTestFinished(() => spy.endAsync(true));
    await spy.subscribeAsync('vietqr/boxId/#', { qos: 0 });
    const { gateway } = await shop(url);
    expect(gateway.logged('listeners-not-reported')).toHaveLength(1);
    expect((await gateway.sendQr(TO_IT)).body.message).toBe('BOX_OFFLINE');
    const box = firmware({ mqttUrl: url });
    await online(gateway, box);
    expect((await gateway.sendQr(TO_IT)).status).toBe(200);
  });

  it('VQD-1 VQD-7 a request that a host has the broker keep is answered once, also by the next run of the gateway', async () => {
    const { url } = await startMosquitto();
    const { gateway, options } = await shop(url);
    const host = await connectAsync(url, LOGIN, false);
    onTestFinished(() => host.endAsync(true));
    const answers: string[] = [];
    host.on('message', (topic) => answers.push(topic));
    await host.subscribeAsync('vietqr/response/+', { qos: 1 });
    const { terminalCode } = VIETQR_BOX;
    const request = JSON.stringify(order({ terminalCode }));
    await host.publishAsync(`vietqr/request/${terminalCode}`, request, { qos: 1, retain: true });
    await eventually('the answer', () => answers.length === 1);
    await gateway.close();
    const next = await dialectGateway(options);
    await host.publishAsync('vietqr/request/LATER', JSON.stringify(order({ orderId: 'LATER' })), { qos: 1 });
    await eventually('the next answer', () => answers.length > 1);
    expect(answers).toEqual([`vietqr/response/${terminalCode}`, 'vietqr/response/LATER']);
    expect(await next.mock('/orders')).toHaveLength(2);
  });
});
