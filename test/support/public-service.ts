import { createHash } from 'node:crypto';
import { createServer, type Socket } from 'node:net';
import { Aedes, type AedesPublishPacket, type Client } from 'aedes';
import { onTestFinished } from 'vitest';

export const SERVICE = {
  checkSumSalt: 'sample-check-sum-salt',
  boxIdSalt: 'sample-box-id-salt',
  username: 'sample-boxes',
  password: 'sample-password',
};
export const MAC = '02:00:5E:10:00:01';

/** How a service of some age answers an enrolment. */
interface Habits {
  /** The spellings of the MAC address in the topic of the answer. */
  spellings?: ('sent' | 'bare')[];
  /** Notices that follow the answer at once. */
  afterwards?: object[];
  code?: string;
  port?: number;
  /** Another than a service would give. */
  qrCertificate?: string;
}

/**
 * The public service with its broker, written anew from the facts about it: it shares no code with the box or the
 * gateway. It keeps what boxes do wrong in `faults`.
 */
export async function publicService(habits: Habits = {}) {
  const { spellings = ['sent', 'bare'], afterwards = [], code, port = 0 } = habits;
  const beforehand: [topic: string, payload: string][] = [];
  const faults: string[] = [];
  const enrolments: string[] = [];
  const connects: { clientId: string; clean: boolean; keepalive: number }[] = [];
  const known = new Map([[MAC.replaceAll(':', ''), code ?? 'VVB000001']]);
  const boxId = (it: string) =>
    Buffer.from(it + SERVICE.boxIdSalt)
      .toString('base64')
      .replace(/=+$/, '');
  const topic = `vietqr/boxId/${boxId(code ?? 'VVB000001')}`;
  const broker = await Aedes.createBroker();
  broker.authenticate = (_client, username, password, done) => {
    const right = username === SERVICE.username && String(password) === SERVICE.password;
    if (right) done(null, true);
    else done(Object.assign(new Error('no'), { returnCode: 5 as const }), null);
  };
  broker.preConnect = (_client, { clientId, clean, keepalive }, done) => {
    connects.push({ clientId, clean: clean === true, keepalive: keepalive ?? 0 });
    done(null, true);
  };
  const publish = (to: string, payload: string, retain = false) =>
    new Promise<void>((resolve, reject) => {
      const packet = { cmd: 'publish' as const, topic: to, payload, qos: 1 as const, retain, dup: false };
      broker.publish(packet, (error) => (error ? reject(error) : resolve()));
    });
  const enrol = async (payload: string) => {
    enrolments.push(payload);
    const { macAddr, checkSum } = JSON.parse(payload);
    const right = createHash('md5').update(`${macAddr}${SERVICE.checkSumSalt}`).digest('hex');
    const bare = macAddr.replaceAll(/[:.]/g, '');
    const box = known.get(bare);
    if (checkSum !== right || box === undefined) return;
    const { qrCertificate = `sample-certificate-of-${box}` } = habits;
    const answer = JSON.stringify({ qrCertificate, boxId: boxId(box) });
    for (const [to, text] of beforehand) await publish(to, text);
    for (const spelling of spellings) {
      await publish(`/vqr/handle-box/response/${spelling === 'sent' ? macAddr : bare}`, answer);
    }
    for (const notice of afterwards) await publish(topic, JSON.stringify(notice));
  };
  broker.on('publish', (packet: AedesPublishPacket, client: Client | null) => {
    if (client === null) return;
    if (packet.topic !== '/vqr/handle-box') faults.push(`published to ${packet.topic}`);
    else if (packet.retain) faults.push('published retained');
    else void enrol(String(packet.payload));
  });
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
    broker.handle(socket);
  });
  const cut = () => {
    for (const socket of sockets) socket.destroy();
  };
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  const stop = async () => {
    cut();
    if (!broker.closed) await new Promise<void>((resolve) => broker.close(resolve));
    await new Promise((resolve) => server.close(resolve));
  };
  onTestFinished(stop);
  const address = server.address();
  const at = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    faults,
    /** What somebody else says before each answer. */
    beforehand,
    enrolments,
    connects,
    known,
    port: at,
    url: `mqtt://127.0.0.1:${at}`,
    boxTopic: topic,
    publish,
    /** Says this to the box, with QoS 1; returns the payload. */
    say: async (notice: object) => {
      const payload = JSON.stringify(notice);
      await publish(topic, payload);
      return payload;
    },
    cut,
    stop,
  };
}
