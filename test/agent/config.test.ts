import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { z } from 'zod';
import { agentConfigSchema, loadAgentConfig, parseAgentConfig } from '../../src/device/agent/config.ts';
import { TRANSPORTS } from '../../src/device/agent/transports/registry.ts';
import { vietqrTransport } from '../../src/device/agent/transports/vietqr.ts';
import { DISPLAY_DRIVERS } from '../../src/device/display/registry.ts';
import { ConfigError } from '../../src/lib/errors.ts';
import { temporaryFolder } from '../support/net.ts';

const LAPTOP = new URL('../../device-config/laptop.yaml', import.meta.url).pathname;
const WITHOUT_SECRET = { box: { terminalCode: 'VVB000001', serialNumber: 'VVB900001' } };
const PUBLIC_LINK = { transport: 'vietqr', ...vietqrTransport.example };
const LEAST = {
  box: { terminalCode: 'VVB000001', serialNumber: 'VVB900001', secret: 'Sample-box-secret-known-to-all' },
  link: { transport: 'mqtt', url: 'mqtt://127.0.0.1:18830' },
  dataDir: 'data',
};

async function loaded(content: unknown) {
  const folder = await temporaryFolder();
  const path = join(folder, 'box.yaml');
  await writeFile(path, typeof content === 'string' ? content : stringify(content));
  return { folder, config: await loadAgentConfig(path) };
}

async function refusal(content: unknown): Promise<string> {
  const error = await loaded(content).then(
    () => undefined,
    (it: unknown) => it,
  );
  expect(error).toBeInstanceOf(ConfigError);
  return error instanceof ConfigError ? error.message : '';
}

describe('the configuration of a box', () => {
  it('device-config/laptop.yaml is valid and names every key but those of other boxes', async () => {
    const config = await loadAgentConfig(LAPTOP);
    const ofOthers = ['buttons', 'enrolment', 'light'];
    expect(config.displays.map((display) => display.driver)).toEqual(['browser', 'terminal']);
    const named = [...Object.keys(config), ...ofOthers];
    expect(named.toSorted()).toEqual(Object.keys(agentConfigSchema.shape).toSorted());
    expect(config.link).toMatchObject({ transport: 'mqtt', url: 'mqtt://127.0.0.1:18830' });
  });

  it("a configuration needs only the box's identity, its gateway and its folder", async () => {
    const { folder, config } = await loaded(LEAST);
    expect(config).toEqual({
      box: LEAST.box,
      link: { ...LEAST.link, keepaliveSeconds: 15, connectTimeoutMs: 8000 },
      displays: [{ driver: 'browser', width: 800, height: 480, rotation: 0 }],
      http: { host: '127.0.0.1', port: 8810 },
      dataDir: join(folder, 'data'),
      paidHoldSeconds: 10,
      endedHoldSeconds: 5,
      onStop: 'blank',
      sandboxMark: true,
      faults: false,
    });
  });

  it("the token of a box's pages is given or read from a file, and refused where it is weak", async () => {
    const folder = await temporaryFolder();
    const token = 'A-token-of-this-test-that-is-long-0001';
    await writeFile(join(folder, 'token'), `${token}\n`);
    const http = { host: '0.0.0.0', port: 8810, token };
    const parse = (pages: object) => parseAgentConfig({ ...LEAST, http: pages }, 'test', folder).http;
    expect(parse({ host: '0.0.0.0', token })).toEqual(http);
    expect(parse({ host: '0.0.0.0', tokenFile: 'token' })).toEqual(http);
    expect(() => parse({ token: 'short' })).toThrow(/test: http\.token: expected a secret of 128 bits/);
    expect(() => parse({ tokenFile: 'none' })).toThrow(/test: http\.tokenFile: cannot be read/);
    expect(() => parse({ token, tokenFile: 'token' })).toThrow(/test: http: expected either token or tokenFile/);
  });

  it('the secret and the path of a display may be read from files beside the configuration', async () => {
    const folder = await temporaryFolder();
    await writeFile(join(folder, 'secret'), 'From-a-file-of-this-test-0001\n');
    const { secret: _, ...box } = LEAST.box;
    const displays = [{ driver: 'png', path: 'screen.png' }];
    const config = parseAgentConfig({ ...LEAST, box: { ...box, secretFile: 'secret' }, displays }, 'test', folder);
    expect(config.box.secret).toBe('From-a-file-of-this-test-0001');
    expect(config.displays[0]?.path).toBe(join(folder, 'screen.png'));
    await writeFile(join(folder, 'secret'), 'short');
    const parse = () => parseAgentConfig({ ...LEAST, box: { ...box, secretFile: 'secret' } }, 'test', folder);
    expect(parse).toThrow(/test: box\.secretFile: expected a secret of 128 bits: .*openssl rand/);
  });

  for (const [kind, registry] of [
    ['driver', DISPLAY_DRIVERS],
    ['transport', TRANSPORTS],
  ] as const) {
    for (const { name, example } of registry.values()) {
      it(`the configuration accepts the example of the ${kind} ${name}`, () => {
        const part = { [kind]: name, ...(example as object) };
        const own = kind === 'transport' && TRANSPORTS.get(name)?.ownLogin !== undefined ? WITHOUT_SECRET : {};
        const value = kind === 'driver' ? { ...LEAST, displays: [part] } : { ...LEAST, ...own, link: part };
        const config = parseAgentConfig(value, 'test');
        expect(kind === 'driver' ? config.displays[0] : config.link).toMatchObject(part);
      });
    }
  }

  it('DIA-9 a box at another service has no secret and nowhere to enrol, and reads its salts from files', async () => {
    const { checkSumSalt: _, password: __, ...link } = PUBLIC_LINK;
    const given = { ...LEAST, ...WITHOUT_SECRET, link: { ...link, checkSumSaltFile: 'salt', passwordFile: 'word' } };
    const folder = await temporaryFolder();
    await writeFile(join(folder, 'salt'), 'salt-of-this-test\n');
    await writeFile(join(folder, 'word'), 'word-of-this-test\n');
    const config = parseAgentConfig(given, 'test', folder);
    expect(config.link).toMatchObject({ checkSumSalt: 'salt-of-this-test', password: 'word-of-this-test' });
    expect(config).not.toHaveProperty('enrolment');
    expect(config.box).not.toHaveProperty('secret');
    expect(() => parseAgentConfig(given, 'test', '/proc')).toThrow(/test: link\.checkSumSaltFile: cannot be read/);
  });

  it('ENR-1 a box without a secret enrols at the gateway of its HTTP link, or else at the address it is given', async () => {
    const { secret: _, ...box } = LEAST.box;
    const tls = { ca: 'ca.pem' };
    const http = { transport: 'http', url: 'https://gateway.example', tls };
    const { folder, config } = await loaded({ ...LEAST, box, link: http });
    expect(config).toMatchObject({
      box,
      enrolment: { url: 'https://gateway.example', tls: { ca: join(folder, 'ca.pem') } },
    });
    const other = { url: 'http://10.0.0.7:8800', allowPlain: true };
    expect((await loaded({ ...LEAST, box, enrolment: other })).config.enrolment).toEqual(other);
    expect((await loaded({ ...LEAST, enrolment: other })).config).not.toHaveProperty('enrolment');
  });

  const noneExpected = 'expected none: another service than a gateway of paybox knows no secret of the box';
  const wrong: [string, unknown, RegExp][] = [
    [
      'a secret for another service',
      { ...LEAST, link: PUBLIC_LINK },
      new RegExp(`box\\.yaml:[\\d:]* box\\.secret: ${noneExpected}$`),
    ],
    [
      'an enrolment for another service',
      { ...LEAST, ...WITHOUT_SECRET, link: PUBLIC_LINK, enrolment: { url: 'https://gateway.example' } },
      new RegExp(`box\\.yaml:[\\d:]* enrolment: ${noneExpected}$`),
    ],
    [
      'another service without its salt',
      { ...LEAST, ...WITHOUT_SECRET, link: { ...PUBLIC_LINK, boxIdSalt: undefined } },
      /box\.yaml:[\d:]* link\.boxIdSalt: expected either boxIdSalt or boxIdSaltFile$/,
    ],
    [
      'another service without TLS on another machine',
      { ...LEAST, ...WITHOUT_SECRET, link: { ...PUBLIC_LINK, url: 'mqtt://broker.example' } },
      /box\.yaml:[\d:]* link\.url: expected an address with TLS for another machine, or allowPlain/,
    ],
    [
      'no MAC address',
      { ...LEAST, ...WITHOUT_SECRET, link: { ...PUBLIC_LINK, macAddr: '02:00' } },
      /box\.yaml:[\d:]* link\.macAddr: .*expected a MAC address|a MAC address, as/,
    ],
    [
      'no secret and no place to enrol',
      { ...LEAST, box: { ...LEAST.box, secret: undefined } },
      /box\.yaml:[\d:]* box: expected box\.secret, box\.secretFile, or enrolment\.url: the address of the gateway over HTTP$/,
    ],
    [
      'enrolment without TLS on another machine',
      { ...LEAST, enrolment: { url: 'http://gateway.example' } },
      /box\.yaml:[\d:]* enrolment\.url: expected an address with TLS for another machine, or allowPlain/,
    ],
    [
      'enrolment at a broker',
      { ...LEAST, enrolment: { url: 'mqtt://127.0.0.1' } },
      /box\.yaml:[\d:]* enrolment\.url: expected an http:\/\/ or https:\/\/ address$/,
    ],
    ['broken YAML', 'box:\n  terminalCode: [VVB000001\n', /box\.yaml:3:1: not valid YAML/],
    ['a doubled key', 'dataDir: a\ndataDir: b\n', /box\.yaml:2:1: not valid YAML: a key is there twice/],
    ['an unknown key', { ...LEAST, colour: 'red' }, /box\.yaml:[\d:]* unknown key colour$/],
    [
      'an unknown key inside',
      { ...LEAST, http: { prot: 1 } },
      /box\.yaml:[\d:]* http: unknown key prot; did you mean port\?$/,
    ],
    [
      'a wrong type',
      { ...LEAST, http: { port: '80' } },
      /box\.yaml:[\d:]* http\.port: expected a (whole )?number, received a text$/,
    ],
    ['a value out of range', { ...LEAST, http: { port: 70_000 } }, /box\.yaml:[\d:]* http\.port: expected .*65535/],
    ['a missing part', { ...LEAST, box: undefined }, /box\.yaml:[\d:]* box: expected an object, but it is missing$/],
    ['an empty file', '', /box\.yaml:[\d:]* is empty$/],
    [
      'a wrong code',
      { ...LEAST, box: { ...LEAST.box, terminalCode: 'VVB1' } },
      /box\.yaml:[\d:]* box\.terminalCode: expected VVB/,
    ],
    [
      'two secrets',
      { ...LEAST, box: { ...LEAST.box, secretFile: 'x' } },
      /box\.yaml:[\d:]* box: expected either secret or/,
    ],
    [
      'a missing secret file',
      { ...LEAST, box: { ...LEAST.box, secret: undefined, secretFile: 'x' } },
      /box\.secretFile: cannot be read/,
    ],
    [
      'an unknown driver',
      { ...LEAST, displays: [{ driver: 'lcd' }] },
      /box\.yaml:[\d:]* displays\.0\.driver: expected one of browser, /,
    ],
    [
      'an unknown transport',
      { ...LEAST, link: { transport: 'fax' } },
      new RegExp(`box\\.yaml:[\\d:]* link\\.transport: expected one of ${[...TRANSPORTS.keys()].join(', ')}$`),
    ],
    [
      "another driver's option",
      { ...LEAST, displays: [{ driver: 'browser', columns: 3 }] },
      /box\.yaml:[\d:]* displays\.0: unknown key columns$/,
    ],
    ['no display', { ...LEAST, displays: [] }, /box\.yaml:[\d:]* displays: expected a list of at least 1 item$/],
    [
      'a broker over http',
      { ...LEAST, link: { transport: 'mqtt', url: 'http://x' } },
      /box\.yaml:[\d:]* link\.url: expected an mqtt:\/\//,
    ],
    [
      'a gateway with a path',
      { ...LEAST, link: { transport: 'http', url: 'http://x/vqr' } },
      /box\.yaml:[\d:]* link\.url: expected an origin only/,
    ],
    ['a file of any size', `dataDir: ${'x'.repeat(70_000)}`, /box\.yaml:[\d:]* has 70009 characters/],
  ];
  for (const [name, content, message] of wrong) {
    it(`refuses ${name}, and names file, path and what is expected`, async () => {
      expect(await refusal(content)).toMatch(message);
    });
  }

  it('a refusal of a configuration never shows a secret', async () => {
    expect(await refusal({ ...LEAST, box: { ...LEAST.box, secret: 'shh', serialNumber: 1 } })).not.toContain('shh');
  });

  it('the JSON schema of the configuration knows every driver and transport', () => {
    const text = JSON.stringify(z.toJSONSchema(agentConfigSchema, { io: 'input' }));
    for (const name of [...DISPLAY_DRIVERS.keys(), ...TRANSPORTS.keys()]) expect(text).toContain(`"const":"${name}"`);
  });
});
