import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { eventually, freePort } from '../support/net.ts';
import { run } from '../support/processes.ts';
import { findProgram, PROGRAMS } from '../support/programs.ts';
import { provisioned } from '../support/provisioned.ts';

/** Mosquitto with the files made for it; `edit` changes its configuration. */
export async function startMosquitto(edit: (config: string) => string = (it) => it) {
  const port = await freePort();
  const made = await provisioned(port);
  const asRoot = process.getuid?.() === 0 ? 'user root\n' : '';
  const file = join(made.path, 'mosquitto/here.conf');
  await writeFile(file, `${edit(await made.text('mosquitto/mosquitto.conf'))}${asRoot}`);
  const broker = run(findProgram(PROGRAMS.mosquitto) ?? '', ['-c', file]);
  await eventually('Mosquitto', () => {
    if (broker.child.exitCode !== null) throw new Error(broker.output());
    return broker.output().includes(' running');
  });
  return { made, broker, url: `mqtts://localhost:${port}` };
}

/** Logins by password in place of certificates. */
export const withPasswords = (config: string) =>
  config.replace(/^(require_certificate|use_identity).*\n/gm, '').replace('# password_file', 'password_file');

/** Without TLS too, for bytes that are written by hand. */
export const plainly = (config: string) =>
  withPasswords(config).replaceAll(/^(cafile|crlfile|certfile|keyfile|tls_version) .*\n/gm, '');
