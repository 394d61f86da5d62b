import { spawnSync } from 'node:child_process';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { mosquittoAcl } from '../../src/device/setup/brokers.ts';

/** Writes a Mosquitto configuration with these logins and the rights that are made for it into `folder`; its file. */
export async function writeMosquittoConfig(
  folder: string,
  port: number,
  logins: Readonly<Record<string, string>>,
): Promise<string> {
  const passwords = join(folder, 'passwords');
  const lines = Object.entries(logins).map(([name, password]) => `${name}:${password}\n`);
  await writeFile(passwords, lines.join(''));
  const hashed = spawnSync('mosquitto_passwd', ['-U', passwords], { encoding: 'utf8' });
  if (hashed.status !== 0) throw new Error(`mosquitto_passwd failed: ${hashed.stderr}`);
  await writeFile(join(folder, 'acl'), mosquittoAcl());
  const config = [
    `listener ${port} 127.0.0.1`,
    'allow_anonymous false',
    `password_file ${passwords}`,
    `acl_file ${join(folder, 'acl')}`,
    'persistence false',
    'set_tcp_nodelay true',
    ...(process.getuid?.() === 0 ? ['user root'] : []),
  ];
  const file = join(folder, 'mosquitto.conf');
  await writeFile(file, `${config.join('\n')}\n`);
  return file;
}
