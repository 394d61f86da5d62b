import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { text } from 'node:stream/consumers';
import { endWithParent } from '../../src/lib/shutdown.ts';

endWithParent([]);

/**
 * The least that a server can do that must not lose a request: keeps its body as one row of an SQLite file, on the disk
 * before it answers, as the gateway does. Writes its address to standard output.
 */
const db = new DatabaseSync(join(process.argv[2] ?? '.', 'bodies.db'));
db.exec(
  'PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE bodies (id INTEGER PRIMARY KEY, body TEXT)',
);
const insert = db.prepare('INSERT INTO bodies (body) VALUES (?)');

const server = createServer(async (request, response) => {
  insert.run(await text(request));
  response.setHeader('content-type', 'application/json').end('{"success":true}');
});
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`http://127.0.0.1:${(server.address() as AddressInfo).port}\n`);
});
