import { readFile, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { z } from 'zod';
import {
  GATEWAY_FILE_CHARS_MAX,
  gatewayConfigSchema,
  loadGatewayConfig,
  parseGatewayConfig,
} from '../../src/gateway/config/config.ts';
import { startGateway } from '../../src/gateway/gateway.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { ConfigError } from '../../src/lib/errors.ts';
import { systemRandom } from '../../src/lib/random.ts';
import { temporaryFolder } from '../support/net.ts';
import { ACCOUNT, BOX1, BOX2, testGateway } from './harness.ts';

const EXAMPLE = resolve(import.meta.dirname, '../../device-config/gateway.yaml');
const LEAST = { dataDir: 'data' };
const FULL = {
  ...LEAST,
  accounts: [ACCOUNT],
  boxes: [BOX1],
  partners: [{ username: 'demo', password: 'demo-secret', accounts: [ACCOUNT.bankAccount] }],
};
const CLUSTER = {
  cluster: { name: 'gateway-1.hanoi_A' },
  databaseUrl: 'postgres://u:p@db.example/paybox',
  mqtt: null,
  adminToken: 'c2VjcmV0LW9mLWEtdGVzdC1vbmx5',
};
const FORMER = 'any gateway takes any call now: remove advertise, shards and ca';
const callback = (change: object) => ({
  partners: [{ username: 'demo', password: 'demo-secret', callback: { url: 'http://127.0.0.1:1/', ...change } }],
});

function problemOf(change: object): string {
  try {
    parseGatewayConfig({ ...FULL, ...change }, 'gateway.yaml');
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError);
    return error instanceof ConfigError ? error.message : '';
  }
  return 'none';
}

describe('the configuration of a gateway', () => {
  it('device-config/gateway.yaml is valid, names every key, and shows the defaults', async () => {
    const config = await loadGatewayConfig(EXAMPLE);
    const named = [...(await readFile(EXAMPLE, 'utf8')).matchAll(/^(?:# )?([a-zA-Z]+):/gm)].map(([, key]) => key);
    expect(Object.keys(gatewayConfigSchema.shape).filter((key) => !named.includes(key))).toEqual([]);
    const { partners, accounts, boxes, dataDir, ...rest } = config;
    expect({ ...parseGatewayConfig(LEAST, 'least'), ...rest, dataDir: 'data' }).toEqual(
      parseGatewayConfig(LEAST, 'least'),
    );
    expect(dataDir).toBe(resolve(EXAMPLE, '../../data/gateway'));
    expect([partners[0]?.username, accounts, boxes[0]?.terminalCode]).toEqual(['demo', [ACCOUNT], BOX1.terminalCode]);
  });

  it('THR-22 VQD a gateway reads the secrets of the dialect from files, and then checks them', async () => {
    const folder = await temporaryFolder();
    const words = {
      salt: 'salt-of-this-test',
      id: 'id-of-this-test',
      word: 'word-of-this-test',
      sample: 'sample-word',
    };
    for (const [name, text] of Object.entries(words)) await writeFile(join(folder, name), `${text}\n`);
    const login = { username: 'boxes', passwordFile: 'word' };
    const vietqrBoxes = { checkSumSaltFile: 'salt', boxIdSaltFile: 'id', login };
    const read = (change: object = {}, more: object = {}) =>
      parseGatewayConfig({ ...FULL, ...more, vietqrBoxes: { ...vietqrBoxes, ...change } }, 'gateway.yaml', folder);
    expect(read().vietqrBoxes).toMatchObject({
      checkSumSalt: 'salt-of-this-test',
      boxIdSalt: 'id-of-this-test',
      login: { username: 'boxes', password: 'word-of-this-test' },
    });
    expect(() => read({ boxIdSalt: 'x' })).toThrow('vietqrBoxes.boxIdSalt: expected either boxIdSalt or boxIdSaltFile');
    expect(() => read({ login: { username: 'x' } })).toThrow('vietqrBoxes.login.password: expected either password or');
    expect(() => read({ checkSumSaltFile: 'none' })).toThrow('vietqrBoxes.checkSumSaltFile: cannot be read');
    const open = { http: { host: '0.0.0.0', allowPlain: true } };
    expect(() => read({ login: { ...login, passwordFile: 'sample' } }, open)).toThrow('password: is a sample');
  });

  it('a gateway needs a folder and nothing else, and presents the service as the protocol says', () => {
    expect(parseGatewayConfig(LEAST, 'least')).toMatchObject({
      http: { host: '127.0.0.1', port: 8800 },
      mqtt: { embedded: { host: '127.0.0.1', port: 18_830 } },
      basePath: '/vqr',
      sandbox: true,
      confirm: 'displayed',
      confirmTimeoutMs: 5000,
      callbackRetryWaitsMs: [1000, 2000, 3000, 4000, 5000, 60_000, 60_000, 60_000, 60_000, 60_000],
      callbackLateRetries: { everySeconds: 3600, forSeconds: 259_200 },
    });
  });

  it.each<[string, object, string]>([
    ['no folder', { dataDir: undefined }, 'gateway.yaml: dataDir: '],
    ['an unknown key', { colour: 'red' }, 'gateway.yaml: unknown key colour'],
    ['an unknown key inside', { http: { prot: 1 } }, 'gateway.yaml: http: unknown key prot'],
    ['a port beyond all', { http: { port: 65_536 } }, 'gateway.yaml: http.port: '],
    ['two brokers', { mqtt: { embedded: {}, url: 'mqtt://x' } }, 'mqtt: expected either embedded or url, not both'],
    ['no broker', { mqtt: {} }, 'mqtt: expected either embedded or url, not both'],
    ['a login for the own broker', { mqtt: { embedded: {}, username: 'x' } }, 'username and password belong to url'],
    ['a broker at no address', { mqtt: { url: 'broker:port' } }, 'mqtt.url: expected an mqtt://'],
    ['a login in the address of a broker', { mqtt: { url: 'mqtt://a:b@x' } }, 'use mqtt.username and mqtt.password'],
    ['a password in the address of a broker', { mqtt: { url: 'mqtt://:b@x' } }, 'use mqtt.username and mqtt.password'],
    ['a broker over http', { mqtt: { url: 'http://x' } }, 'mqtt.url: expected an mqtt://'],
    ['a base path with a slash at its end', { basePath: '/vqr/' }, 'basePath: expected a path as /vqr'],
    ['a base path with a parameter', { basePath: '/:x' }, 'basePath: expected a path as /vqr'],
    ['a database of another kind', { databaseUrl: 'mysql://x/y' }, 'databaseUrl: expected postgres://user'],
    ['a database without a name', { databaseUrl: 'postgres://x:5432' }, 'databaseUrl: expected postgres://user'],
    ['a database at no address', { databaseUrl: 'paybox' }, 'databaseUrl: expected postgres://user'],
    [
      'a limit in the address of a database',
      { databaseUrl: 'postgres://x/y?statement_timeout=0' },
      'databaseUrl: expected no parameters but sslmode and sslrootcert',
    ],
    ['a confirmation that is none', { confirm: 'sent' }, 'gateway.yaml: confirm: '],
    ['a deadline of nothing', { confirmTimeoutMs: 0 }, 'gateway.yaml: confirmTimeoutMs: '],
    [
      'a short admin token',
      { adminToken: 'short' },
      'adminToken: expected a secret of 128 bits: 32 hexadecimal digits',
    ],
    [
      'a short secret of a box',
      { boxes: [{ ...BOX1, secret: 'short' }] },
      'boxes.0.secret: expected a secret of 128 bits',
    ],
    [
      'a sample for a secret where other machines reach it',
      { http: { host: '0.0.0.0', allowPlain: true }, boxes: [{ ...BOX1, secret: 'Sample-box-secret-known-to-all' }] },
      'boxes.0.secret: is a sample, which everybody knows; expected',
    ],
    [
      'a sample for the admin token where other machines reach it',
      { http: { host: '0.0.0.0', allowPlain: true }, adminToken: 'Sample-token-that-everybody-knows' },
      'adminToken: is a sample',
    ],
    [
      'a box code of another form',
      { boxes: [{ ...BOX1, terminalCode: 'BOX1' }] },
      'boxes.0.terminalCode: expected VVB followed',
    ],
    [
      'two boxes of one code',
      { boxes: [BOX1, { ...BOX2, terminalCode: BOX1.terminalCode }] },
      'boxes.1.terminalCode: the',
    ],
    [
      'two boxes of one serial',
      { boxes: [BOX1, { ...BOX2, serialNumber: BOX1.serialNumber }] },
      'boxes.1.serialNumber: the',
    ],
    [
      'a box of an unknown account',
      { boxes: [{ ...BOX1, account: 'NOSUCH' }] },
      'boxes.0.account: expected a bankAccount listed',
    ],
    [
      'an unknown bank',
      { accounts: [{ ...ACCOUNT, bankCode: 'NOBANK' }] },
      'accounts.0.bankCode: expected the short name',
    ],
    ['one account twice', { accounts: [ACCOUNT, ACCOUNT] }, 'accounts.1.bankAccount: the account 0123456789 is'],
    [
      'a colon in a user name',
      { partners: [{ username: 'a:b', password: 'x' }] },
      'partners.0.username: expected 1 to 64',
    ],
    [
      'one account for two',
      { partners: [...FULL.partners, { ...FULL.partners[0], username: 'b' }] },
      'partners.1.accounts.0',
    ],
    ['a callback over ftp', callback({ url: 'ftp://x/' }), 'partners.0.callback.url: expected an http://'],
    [
      'a callback with a login in its address',
      callback({ url: 'http://a:b@x/' }),
      'an address without a user name and password: use auth',
    ],
    [
      'a callback with a password alone in its address',
      callback({ url: 'http://:b@x/' }),
      'an address without a user name',
    ],
    ['a callback to no address', callback({ url: 'partner.example' }), 'partners.0.callback.url: expected an http://'],
    ['a bearer without a token', callback({ auth: { kind: 'bearer' } }), 'partners.0.callback.auth.token: '],
    ['another authorization', callback({ auth: { kind: 'basic' } }), 'partners.0.callback.auth'],
  ])(
    'a configuration of a gateway is refused with %s, by file, path and what was expected',
    (_name, change, expected) => {
      expect(problemOf(change)).toContain(expected);
    },
  );

  it('a gateway of a cluster has a name, its database, its broker and a token; it may have open enrolment and boxes of the dialect', () => {
    expect(problemOf(CLUSTER)).toBe('none');
    const login = { username: 'boxes', password: 'password-of-this-test' };
    const vietqrBoxes = { checkSumSalt: 'salt-of-this-test', boxIdSalt: 'id-of-this-test', login };
    const boxes = [{ ...BOX1, secret: undefined, dialect: 'vietqr', macAddr: 'A0B1C2D3E4F5' }];
    const open = { enrolment: 'open', mqtt: { url: 'mqtt://127.0.0.1:1' }, vietqrBoxes, boxes };
    expect(problemOf({ ...CLUSTER, ...open })).toBe('none');
    expect(problemOf({ ...CLUSTER, cluster: { name: 'Hà Nội' } })).toContain('cluster.name: expected 1 to 32 letters');
  });

  it.each<[string, object, string]>([
    ['no name', { cluster: {} }, 'cluster.name: '],
    ['a name of 33 characters', { cluster: { name: 'a'.repeat(33) } }, 'cluster.name: expected 1 to 32 letters'],
    ['no database', { databaseUrl: undefined }, 'databaseUrl: expected with cluster'],
    ['a broker of its own', { mqtt: { embedded: {} } }, 'mqtt: expected the url of a broker that all gateways share'],
    ['no token of an admin', { adminToken: undefined }, 'adminToken: expected with cluster'],
    ['trust in its machine', { http: { loopback: 'viewer' } }, 'http.loopback: expected none with cluster'],
    ['a standby', { standby: true }, 'standby: expected false'],
    ['the keys of earlier versions', { cluster: { advertise: 'http://10.0.0.5', shards: 4 } }, `cluster: ${FORMER}`],
    ['one of them', { cluster: { name: 'a', ca: 'ca.pem' } }, `cluster: ${FORMER}`],
    ['an unknown key', { cluster: { nam: 'a' } }, 'cluster: unknown key nam; did you mean name?'],
  ])('the configuration of a gateway of a cluster is refused with %s', (_name, change, expected) => {
    expect(problemOf({ ...CLUSTER, ...change })).toContain(expected);
  });

  it('a configuration of a gateway is refused with at most a few of its problems', () => {
    const boxes = Array.from({ length: 30 }, () => ({ ...BOX1, secret: 'short' }));
    expect(problemOf({ boxes }).split('\n')).toHaveLength(9);
    expect(problemOf({ boxes })).toMatch(/and \d+ more$/);
  });

  it("a refusal of a gateway's configuration never shows a secret", () => {
    expect(problemOf({ adminToken: 'hunter2' })).not.toContain('hunter2');
    expect(problemOf({ boxes: [{ ...BOX1, secret: 'hunter2' }] })).not.toContain('hunter2');
    expect(problemOf({ mqtt: { url: 'mqtt://a:hunter2@x' } })).not.toContain('hunter2');
    expect(problemOf(callback({ url: 'http://a:hunter2@x/' }))).not.toContain('hunter2');
    expect(problemOf({ databaseUrl: 'mysql://a:hunter2@x/y' })).not.toContain('hunter2');
    expect(problemOf({ databaseUrl: 'postgres://a:hunter2@x' })).not.toContain('hunter2');
  });

  it.each(['postgres://u:p@db.example:5433/paybox', 'postgresql://u@127.0.0.1/p?sslmode=disable'])(
    'takes the database %s',
    (databaseUrl) => {
      expect(parseGatewayConfig({ ...FULL, databaseUrl }, 'x').databaseUrl).toBe(databaseUrl);
    },
  );

  it('a configuration of a gateway may list some thousand boxes, and is refused beyond its limit', async () => {
    const file = join(await temporaryFolder(), 'gateway.yaml');
    const box = (i: number) => `VVB${String(i).padStart(6, '0')}`;
    const boxes = Array.from({ length: 5_000 }, (_, i) => ({
      terminalCode: box(i),
      serialNumber: box(900_000 + i),
      secret: `Secret-of-a-box-${box(i)}-of-the-test`.padEnd(43, '-'),
    }));
    const text = stringify({ dataDir: 'data', boxes });
    await writeFile(file, text);
    expect((await loadGatewayConfig(file)).boxes).toHaveLength(5_000);
    await writeFile(file, `#${' '.repeat(GATEWAY_FILE_CHARS_MAX)}`);
    await expect(loadGatewayConfig(file)).rejects.toThrow('has 8388609 characters, expected at most 8388608');
  });

  it('a configuration of a gateway is read from a file, its folder relative to it; a missing file and illegal YAML are named', async () => {
    const folder = await temporaryFolder();
    const file = join(folder, 'my.yaml');
    await expect(loadGatewayConfig(file)).rejects.toThrow(`${file}: cannot be read`);
    await writeFile(file, 'a: [');
    await expect(loadGatewayConfig(file)).rejects.toThrow('my.yaml:1:5: not valid YAML');
    await writeFile(file, stringify(FULL));
    expect((await loadGatewayConfig(file)).dataDir).toBe(join(folder, 'data'));
    await writeFile(file, '');
    await expect(loadGatewayConfig(file)).rejects.toThrow('my.yaml');
  });

  it('the configuration of a gateway has a JSON schema', () => {
    expect(z.toJSONSchema(gatewayConfigSchema, { io: 'input' })).toMatchObject({ required: ['dataDir'] });
  });

  it('a gateway names the option of a port that is taken', async () => {
    const taken = await testGateway();
    const port = Number(new URL(taken.origin).port);
    const log = { info: () => undefined, warn: () => undefined, error: () => undefined, with: () => log };
    const start = async (change: object) => {
      const config = { http: { port: 0 }, mqtt: null, dataDir: await temporaryFolder(), ...change };
      return startGateway(parseGatewayConfig(config, 'test'), { clock: systemClock, random: systemRandom, log });
    };
    await expect(start({ http: { port } })).rejects.toThrow(`http.port: port ${port} is already in use`);
    await expect(start({ mqtt: { embedded: { port } } })).rejects.toThrow(
      `mqtt.embedded.port: port ${port} is already`,
    );
  });
});
