import type { AddressInfo } from 'node:net';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Aedes } from 'aedes';
import fastify from 'fastify';
import { endWithParent } from '../../src/lib/shutdown.ts';

endWithParent([]);

/**
 * The least that a gateway can do for a push: by the same HTTP server, broker and database, one durable commit (`?commits=2`: two) and
 * one QoS 1 round trip to a box, without signatures, orders or anything else. Writes its addresses to standard output.
 */
const db = new DatabaseSync(join(process.argv[2] ?? '.', 'floor.db'));
db.exec(
  'PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE pushes (id INTEGER PRIMARY KEY, body TEXT)',
);
const insert = db.prepare('INSERT INTO pushes (body) VALUES (?)');

const broker = await Aedes.createBroker({ concurrency: 0 });
const mqtt = createServer((socket) => {
  socket.setNoDelay(true);
  broker.handle(socket);
});
const waiting = new Map<string, () => void>();
broker.subscribe(
  '+/up',
  ({ topic }, done) => {
    waiting.get(topic.split('/')[0] ?? '')?.();
    done();
  },
  () => undefined,
);

interface Push {
  Querystring: { commits?: string };
  Body: { terminalCode: string };
}

const http = fastify();
http.post<Push>('/push', async ({ body, query: { commits = '1' } }) => {
  const { terminalCode } = body;
  const text = JSON.stringify(body);
  insert.run(text);
  const answered = new Promise<void>((resolve) => waiting.set(terminalCode, resolve));
  const packet = {
    cmd: 'publish',
    topic: `${terminalCode}/down`,
    payload: text,
    qos: 1,
    retain: false,
    dup: false,
  } as const;
  broker.publish(packet, () => undefined);
  await answered;
  for (let more = 1; more < Number(commits); more += 1) insert.run(text);
  return { status: 'SUCCESS', message: '' };
});

await new Promise<void>((resolve) => mqtt.listen(0, '127.0.0.1', resolve));
const origin = await http.listen({ host: '127.0.0.1', port: 0 });
const mqttUrl = `mqtt://127.0.0.1:${(mqtt.address() as AddressInfo).port}`;
process.stdout.write(`${JSON.stringify({ origin, mqttUrl })}\n`);
