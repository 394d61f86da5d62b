import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { ProvisionFolder } from '../../src/device/setup/folder.ts';
import type { Credential } from '../../src/device/setup/pki.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { temporaryFolder } from './net.ts';

export const BOXES = [1, 2].map((n) => ({ terminalCode: `VVB00000${n}`, serialNumber: `VVB90000${n}` }));

/** The output of `paybox provision` for this machine and two boxes, in a folder deleted after the test. */
export async function provisioned(mqttPort = 8883, httpPort = 8443) {
  const path = join(await temporaryFolder(), 'made');
  const folder = new ProvisionFolder(path, systemClock.wallMs(), systemRandom);
  const at = { hosts: ['localhost', '127.0.0.1'], httpPort, mqttPort };
  await folder.begin(at);
  await folder.addBoxes(BOXES, at, () => undefined);
  const text = (name: string) => readFile(join(path, name), 'utf8');
  return {
    folder,
    path,
    text,
    at,
    authority: async (): Promise<Credential> => ({ cert: await text('ca.pem'), key: await text('ca-key.pem') }),
    /** Configuration of box `n` with its secret and its files. */
    box: async (n: 1 | 2) => {
      const terminalCode = `VVB00000${n}`;
      const own = folder.boxFolder(terminalCode);
      const secret = (await text(`boxes/${terminalCode}/secret`)).trim();
      const files = { ca: join(own, 'ca.pem'), cert: join(own, 'cert.pem'), key: join(own, 'key.pem') };
      return { terminalCode, serialNumber: `VVB90000${n}`, secret, folder: own, files };
    },
  };
}
