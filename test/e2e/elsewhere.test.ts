import { spawnSync } from 'node:child_process';
import { pbkdf2Sync } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { HEALTH_PROGRAM } from '../../scripts/oci/root.ts';
import { mosquittoAcl } from '../../src/device/setup/brokers.ts';
import { payboxToEnd } from '../support/processes.ts';
import { findProgram, PROGRAMS, without } from '../support/programs.ts';
import { options, ROOT, read, runSteps } from './elsewhere-fixture.ts';

describe('scripts/compose.yaml', () => {
  const compose = parse(read('scripts/compose.yaml')) as {
    services: Record<
      'gateway' | 'database' | 'broker',
      { image: string; ports?: string[]; volumes: string[]; healthcheck?: { test: string[] } }
    >;
    volumes: Record<string, null>;
  };
  const gateway = parse(read('scripts/compose/gateway.yaml')) as {
    mqtt: { url: string; username: string; password: string };
    databaseUrl: string;
  };

  it('compose.yaml has services, volumes and folders that there are, and ports of this machine only', () => {
    const { version } = JSON.parse(read('package.json')) as { version: string };
    expect(compose.services.gateway.image).toBe(`paybox:\${PAYBOX_VERSION:-${version}}`);
    for (const { volumes, ports = [] } of Object.values(compose.services)) {
      for (const from of volumes.map((volume) => volume.split(':')[0] ?? '')) {
        const isThere = from.startsWith('.') ? existsSync(join(ROOT, 'scripts', from)) : from in compose.volumes;
        expect({ from, isThere }).toEqual({ from, isThere: true });
      }
      for (const port of ports) expect(port).toMatch(/^127\.0\.0\.1:/);
    }
    for (const address of [gateway.mqtt.url, gateway.databaseUrl]) {
      expect(Object.keys(compose.services)).toContain(new URL(address).hostname);
    }
  });

  it('STO-7 compose.yaml asks the gateway whether it accepts calls, as the image does', () => {
    expect(compose.services.gateway.healthcheck?.test).toEqual(['CMD', '/usr/lib/paybox/node', HEALTH_PROGRAM]);
    expect(read('scripts/oci/root.ts')).toContain("|| 'http://127.0.0.1:8800/readyz'");
  });

  it('compose.yaml mounts a gateway that is valid, and a broker with its login and the topic rights of today', async () => {
    const { code, output } = await payboxToEnd('config', 'check', join(ROOT, 'scripts/compose/gateway.yaml'));
    expect({ code, output }).toMatchObject({ code: 0 });
    expect(read('scripts/compose/acl')).toBe(mosquittoAcl());
    const { username, password } = gateway.mqtt;
    const [name, , , rounds, salt = '', hash = ''] = read('scripts/compose/passwords').trim().split(/[:$]/);
    const made = pbkdf2Sync(password, Buffer.from(salt, 'base64'), Number(rounds), 64, 'sha512').toString('base64');
    expect([name, hash]).toEqual([username, made]);
  });
});

const { missing, note } = without(PROGRAMS.haproxy);

describe.skipIf(missing)(`scripts/haproxy.cfg${note}`, () => {
  it('HAProxy accepts haproxy.cfg without a warning: every option is where it counts', () => {
    const args = ['-c', '-f', join(ROOT, 'scripts/haproxy.cfg')];
    const { status, stdout, stderr } = spawnSync(findProgram(PROGRAMS.haproxy) ?? '', args, { encoding: 'utf8' });
    expect(status).toBe(0);
    expect(`${stdout}${stderr}`).not.toMatch(/WARNING|ALERT/i);
    expect(read('scripts/haproxy.cfg').match(/^ +option http-no-delay/gm)).toHaveLength(3);
  });
});

describe('the GitHub action', () => {
  it('the GitHub action fails with the reason where paybox does not start', async () => {
    const { failed, told } = await runSteps({ ...(await options()), 'callback-url': 'no address' });
    expect({ failed, told }).toMatchObject({ failed: true });
    expect(told).toContain('::error::paybox up did not start: paybox: --callback-url no address: expected an http');
  });
});
