import { readFile } from 'node:fs/promises';
import { endWithParent } from '../../src/lib/shutdown.ts';
import { type LightIdentity, lightFleet } from './light-fleet.ts';
import { took } from './loop.ts';

endWithParent([]);

/* Light boxes in a process of their own: arguments are a folder, the gateway's broker, and a file of identities. Says when all are registered. */

const [, , , url = '', file = ''] = process.argv;
const identities = JSON.parse(await readFile(file, 'utf8')) as LightIdentity[];
const fleet = await lightFleet(identities, { transport: 'mqtt', url });
const registeredMs = await took(() => fleet.start(identities.length));
process.stdout.write(`${JSON.stringify({ pid: process.pid, registeredMs })}\n`);
