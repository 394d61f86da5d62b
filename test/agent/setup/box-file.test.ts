import { readFile } from 'node:fs/promises';
import { describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { agentConfigSchema } from '../../../src/device/agent/config.ts';
import {
  agentFilesOf,
  type BoxSettings,
  boxFileSchema,
  maskedBoxFile,
  readBoxFile,
} from '../../../src/device/agent/setup/box-file.ts';
import { BOX_FILE_BYTES_MAX } from '../../../src/device/agent/setup/machine.ts';
import { createAuthority, issue, validFor } from '../../../src/device/setup/pki.ts';
import { ConfigError } from '../../../src/lib/errors.ts';
import { fc } from '../../support/properties.ts';

const CODES = 'terminalCode: VVB000001\nserialNumber: VVB900001\n';
const LEAST = `${CODES}gateway: https://gateway.example\n`;
const EXAMPLE = new URL('../../../device-config/paybox.yaml', import.meta.url);

const read = (text: string, before?: BoxSettings) => readBoxFile(Buffer.from(text), before);
const configOf = (text: string) => parse(agentFilesOf(read(text).settings, 'box-1', '/state')['agent.yaml']) as object;

/** What a person is told of these bytes. */
function told(bytes: string | Uint8Array): string {
  try {
    readBoxFile(Buffer.from(bytes), undefined);
  } catch (error) {
    if (error instanceof ConfigError) return error.message;
    throw error;
  }
  throw new Error('it was taken');
}

async function pems() {
  const nowMs = Date.UTC(2026, 0, 1);
  const authority = await createAuthority('test', validFor(nowMs, 10));
  const { cert, key } = await issue(authority, 'VVB000001', { kind: 'client' }, validFor(nowMs, 10));
  const other = await issue(authority, 'VVB000002', { kind: 'client' }, validFor(nowMs, 10));
  const block = (name: string, pem: string) => `${name}: |\n${pem.replaceAll(/^(?=.)/gm, '  ')}`;
  return { ca: authority.cert, cert, key, other: other.key, block };
}

describe('a paybox.yaml', () => {
  it('a paybox.yaml of three lines is a box that enrols, with a framebuffer', () => {
    const config = configOf(LEAST);
    expect(config).toEqual({
      box: { terminalCode: 'VVB000001', serialNumber: 'VVB900001' },
      link: { transport: 'http', url: 'https://gateway.example' },
      displays: [{ driver: 'framebuffer' }],
      dataDir: '/state',
    });
    expect(agentConfigSchema.safeParse(config).success).toBe(true);
  });

  const PUBLIC = `${CODES}gateway: mqtts://broker.example:8883
link:
  transport: vietqr
  macAddr: 02:00:5E:10:00:01
  checkSumSalt: check-salt-of-this-test  # theirs
  boxIdSalt: "id-salt-of-this-test"
  username: boxes
  password: login-word-of-this-test
  qrLifetimeSeconds: 120
`;

  it('DIA-9 a paybox.yaml names the public service in its dialect, whose secrets go into files', async () => {
    const { settings, withoutSecrets } = read(PUBLIC);
    const { 'agent.yaml': yaml, ...files } = agentFilesOf(settings, 'box-1', '/state');
    expect(files).toEqual({
      'box-1/checkSumSalt': 'check-salt-of-this-test\n',
      'box-1/boxIdSalt': 'id-salt-of-this-test\n',
      'box-1/password': 'login-word-of-this-test\n',
    });
    expect(agentConfigSchema.parse(parse(yaml))).toMatchObject({
      link: {
        ...{ transport: 'vietqr', url: 'mqtts://broker.example:8883', macAddr: '02:00:5E:10:00:01', username: 'boxes' },
        ...{ checkSumSaltFile: 'box-1/checkSumSalt', boxIdSaltFile: 'box-1/boxIdSalt', passwordFile: 'box-1/password' },
        qrLifetimeSeconds: 120,
      },
    });
    expect(yaml + withoutSecrets).not.toContain('of-this-test');
    expect(withoutSecrets).toContain('checkSumSalt: kept  # theirs');
    expect(read(withoutSecrets, settings).settings).toEqual(settings);
    const elsewhere = withoutSecrets.replace('broker.example', 'broker.thief.example');
    expect(() => read(elsewhere, settings)).toThrow('link.checkSumSalt: this box has kept none');
    expect(JSON.stringify(maskedBoxFile(Buffer.from(PUBLIC)))).not.toContain('of-this-test');
  });

  it.each([
    ['a secret of the box', `${PUBLIC}secret: A-long-secret-that-a-box-has\n`, 'secret: expected none beside link'],
    ['an enrolment', `${PUBLIC}enrolment: https://g.example\n`, 'enrolment: expected none beside link'],
    ['no salt', PUBLIC.replace(/\n.*checkSumSalt.*/, ''), 'link.checkSumSalt: expected what all boxes'],
    ['another transport', PUBLIC.replace('vietqr', 'mqtt'), 'link.transport: expected vietqr'],
    [
      'no broker',
      PUBLIC.replace('mqtts://broker.example:8883', 'https://g.example'),
      'gateway: expected the address of a',
    ],
    ['no TLS', PUBLIC.replace('mqtts', 'mqtt'), 'gateway: expected an address with TLS'],
  ])('DIA-9 the public service with %s is refused by name', (_what, text, message) => {
    expect(told(text)).toContain(message);
  });

  it('a paybox.yaml with every key becomes a configuration that the agent accepts', async () => {
    const { ca, cert, key, block } = await pems();
    const file = `${CODES}gateway: mqtts://broker.example:8883
secret: A-long-secret-that-a-box-has
${block('ca', ca)}${block('cert', cert)}${block('key', key)}display: { driver: png, path: /tmp/a.png }
voice: { driver: espeak, volumePercent: 40 }
http: { port: 8899 }
paidHoldSeconds: 7
endedHoldSeconds: 3
onStop: leave
sandboxMark: false
`;
    const { 'agent.yaml': yaml, ...files } = agentFilesOf(read(file).settings, 'box-1', '/state');
    expect(files).toEqual({
      'box-1/secret': 'A-long-secret-that-a-box-has\n',
      'box-1/ca.pem': ca,
      'box-1/cert.pem': cert,
      'box-1/key.pem': key,
    });
    const config = agentConfigSchema.parse(parse(yaml));
    expect(config).toMatchObject({
      box: { secretFile: 'box-1/secret' },
      link: { transport: 'mqtt', tls: { ca: 'box-1/ca.pem', cert: 'box-1/cert.pem', key: 'box-1/key.pem' } },
      displays: [{ driver: 'png', path: '/tmp/a.png' }],
      voice: { volumePercent: 40 },
      http: { host: '127.0.0.1', port: 8899 },
      paidHoldSeconds: 7,
      onStop: 'leave',
      sandboxMark: false,
    });
  });

  it('a paybox.yaml names where a box on a broker enrols, and what that gateway is known by', async () => {
    const { ca, block } = await pems();
    const config = configOf(
      `${CODES}gateway: mqtts://broker.example\nenrolment: https://gateway.example:8443\n${block('ca', ca)}`,
    );
    expect(agentConfigSchema.parse(config)).toMatchObject({
      enrolment: { url: 'https://gateway.example:8443', tls: { ca: 'box-1/ca.pem' } },
    });
    expect(configOf(`${LEAST}display: terminal\n`)).toMatchObject({ displays: [{ driver: 'terminal' }] });
    const plain = configOf(`${CODES}gateway: http://10.0.2.2:8800\nallowPlain: true\n`);
    expect(agentConfigSchema.parse(plain)).toMatchObject({ link: { allowPlain: true } });
  });

  it('the example of paybox.yaml is valid and names every key', async () => {
    const text = await readFile(EXAMPLE, 'utf8');
    expect(read(text).settings.wifi?.ssid).toBe('Quán Cà Phê');
    for (const key of Object.keys(boxFileSchema.shape)) expect(text).toMatch(new RegExp(`\\b${key}\\b`));
  });

  it('a paybox.yaml may come from Windows: with a byte order mark and CRLF', () => {
    const windows = `\uFEFF${LEAST}secret: "A-long-secret-that-a-box-has"\n`.replaceAll('\n', '\r\n');
    const { settings, withoutSecrets } = read(windows);
    expect(settings).toMatchObject({ terminalCode: 'VVB000001', secret: 'A-long-secret-that-a-box-has' });
    expect(withoutSecrets).toBe(windows.replace('\uFEFF', '').replace('"A-long-secret-that-a-box-has"', 'kept'));
  });
});

describe('a paybox.yaml with a mistake', () => {
  it.each([
    ['a tab', 'wifi:\n\tssid: x\n', /^paybox\.yaml:5:1: not valid YAML: a line begins with a tab/],
    [
      'a key twice',
      'secret: aaaaaaaaa\nsecret: bbbbbbbbb\n',
      /^paybox\.yaml:5:1: not valid YAML: a key is there twice/,
    ],
    ['curly quotes', 'wifi:\n  ssid: “Quán”\n', /^paybox\.yaml:5:9: not valid YAML: a text stands in the curly quotes/],
    ['an unknown key', 'pasword: x\n', /^paybox\.yaml:4: unknown key pasword$/],
    ['a key at the wrong place', 'wifi:\n  ssid: x\n  pass: y\n', /^paybox\.yaml:6: wifi: unknown key pass$/],
    ['a number for a text', 'secret: 12345678\n', /^paybox\.yaml:4: secret: expected the secret, in quotes/],
    ['a password in digits', 'wifi:\n  ssid: x\n  psk: 12345678\n', /^paybox\.yaml:6: wifi\.psk: expected .*in quotes/],
    [
      'a short password',
      'wifi: {ssid: x, psk: short}\n',
      /^paybox\.yaml:4: wifi\.psk: expected a WPA password of 8 to 63/,
    ],
    [
      'a long network name',
      `wifi: {ssid: ${'ơ'.repeat(17)}}\n`,
      /^paybox\.yaml:4: wifi\.ssid: expected at most 32 bytes/,
    ],
    ['a country', 'wifi: {ssid: x, country: Vietnam}\n', /^paybox\.yaml:4: wifi\.country: expected a country as VN/],
    ['a display that is none', 'display: cinema\n', /^paybox\.yaml:4: display\.driver: expected one of .*framebuffer/],
    [
      'an option of a display',
      'display:\n  driver: nextion\n  speed: 1\n',
      /^paybox\.yaml:6: display: unknown key speed$/m,
    ],
    [
      'two ways for displays',
      'display: terminal\ndisplays: [{driver: terminal}]\n',
      /^paybox\.yaml:5: displays: expected display or displays$/,
    ],
    ['no certificate', 'ca: gateway.pem\n', /^paybox\.yaml:4: ca: expected a certificate, PEM$/],
    ['a certificate without key', 'cert: x\n', /^paybox\.yaml:4: cert: expected a certificate/],
    ['something kept that is not', 'secret: kept\n', /^paybox\.yaml:4: secret: this box has kept none$/],
    ['an alias to nothing', 'secret: *nothing\n', /^paybox\.yaml: not valid YAML: Unresolved alias/],
  ])('%s is named with its line', (_what, lines, message) => {
    expect(told(`${LEAST}${lines}`)).toMatch(message);
  });

  it.each([
    ['nothing', '', /^paybox\.yaml:1: expected lines as terminalCode/],
    ['a list', '- a\n', /^paybox\.yaml:1: expected lines as terminalCode/],
    ['one word', 'hello\n', /^paybox\.yaml:1: expected lines as terminalCode/],
    ['a missing code', LEAST.replace(/terminalCode.*\n/, ''), /terminalCode: expected .*missing/],
    [
      'a code that is none',
      LEAST.replace('VVB9', 'VVC9'),
      /^paybox\.yaml:2: serialNumber: expected VVB followed by six/,
    ],
    [
      'an address that is none',
      `${CODES}gateway: gateway.example\n`,
      /^paybox\.yaml:3: gateway: expected an mqtts:\/\/ or https:\/\/ address/,
    ],
    ['a path', `${CODES}gateway: https://a.example/vqr\n`, /^paybox\.yaml:3: gateway: expected an origin only/],
    ['no TLS', `${CODES}gateway: http://a.example\n`, /^paybox\.yaml:3: gateway: expected an address with TLS/],
    [
      'a broker and nowhere to enrol',
      `${CODES}gateway: mqtts://a.example\n`,
      /enrolment: expected the address of the gat/,
    ],
  ])('%s is named', (_what, text, message) => {
    expect(told(text)).toMatch(message);
  });

  it('a paybox.yaml in another encoding is refused, with the line of the first such letter', () => {
    const windows = Buffer.from(`${LEAST}wifi:\n  ssid: "Qu\xe1n"\n`, 'latin1');
    expect(told(windows)).toBe('paybox.yaml:5: has letters that are not UTF-8');
    expect(told(Buffer.from(`\uFEFF${LEAST}`, 'utf16le'))).toBe('paybox.yaml:1: is UTF-16, expected UTF-8');
    expect(told(Buffer.from(LEAST, 'utf16le'))).toBe('paybox.yaml:1: is no text');
    expect(told(Uint8Array.of(0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0, 1))).toBe(
      'paybox.yaml:1: has letters that are not UTF-8',
    );
  });

  it('a paybox.yaml is not read beyond its limit', () => {
    expect(told(new Uint8Array(1_000_000).fill(35))).toBe(`paybox.yaml: expected at most ${BOX_FILE_BYTES_MAX} bytes`);
  });

  it('a paybox.yaml with a certificate needs its key', async () => {
    const { cert, key, other, block } = await pems();
    const head = `${CODES}gateway: mqtts://a.example\nsecret: A-long-secret-that-a-box-has\n`;
    expect(told(`${head}${block('cert', cert)}${block('key', other)}`)).toMatch(
      /: key: expected the private key of cert$/,
    );
    expect(told(`${head}${block('key', key)}`)).toMatch(/cert: expected cert and key together$/);
    expect(told(`${head}${block('cert', cert)}key: |\n  -----BEGIN PRIVATE KEY-----\n  AA\n`)).toMatch(
      /^paybox\.yaml:\d+: key: expected a private key, PEM/,
    );
  });

  it('a refusal of paybox.yaml never shows a secret', () => {
    for (const lines of [
      'secret: "hunter2-hunter2\n',
      'secret: hunter2-hunter2\n\tx: 1\n',
      'secret: [hunter2-hunter2]\n',
    ]) {
      expect(told(`${LEAST}${lines}`)).not.toContain('hunter2');
    }
  });
});

describe('secrets in a paybox.yaml', () => {
  it('the secrets of a paybox.yaml are replaced, and nothing else is', async () => {
    const { cert, key, block } = await pems();
    const file = `# Ours\n${CODES}gateway: mqtts://a.example  # there\n${block('cert', cert)}${block('key', key)}secret: 'It''s-a-secret-of-this-test'  # mine\nwifi:\n  psk: "with # and : in it"\n  ssid: Quán\n`;
    const { withoutSecrets } = read(file);
    const wanted = file
      .replace(block('key', key), 'key: kept\n')
      .replace("'It''s-a-secret-of-this-test'", 'kept')
      .replace('"with # and : in it"', 'kept');
    expect(withoutSecrets).toBe(wanted);
  });

  it.each([
    [
      'in a comment too',
      'secret: My-secret-number-1-of-a-test # was My-secret-number-1-of-a-test\n',
      'My-secret-number-1-of-a-test',
    ],
    [
      'by an alias',
      'secret: &s My-secret-number-2-of-a-test\nwifi: {ssid: x, psk: *s}\n',
      'My-secret-number-2-of-a-test',
    ],
    ['in braces', 'wifi: {ssid: x, psk: My-secret-number-3-of-a-test}\n', 'My-secret-number-3-of-a-test'],
    [
      'over lines',
      'secret: >-\n  my-secret-4\n  goes on over several lines, until it is as long as it has to be\n',
      'my-secret-4',
    ],
    ['with an escape', 'secret: "My\\x2dsecret\\x2d5-of-a-test-0000"\n', 'secret\\x2d5'],
  ])('%s are gone', (_what, lines, secret) => {
    const { withoutSecrets, settings } = read(`${LEAST}${lines}`);
    expect(withoutSecrets).not.toContain(secret);
    const again = read(withoutSecrets, settings);
    expect(again.settings).toEqual(settings);
    expect(again.withoutSecrets).toBe(withoutSecrets);
  });

  it('stored secrets stay with their box and their network', () => {
    const { settings } = read(
      `${LEAST}secret: My-secret-number-1-of-a-test\nwifi: {ssid: x, psk: My-secret-number-3-of-a-test}\n`,
    );
    const kept = `${LEAST}secret: kept\nwifi: {ssid: x, psk: kept}\n`;
    expect(read(kept, settings).settings).toEqual(settings);
    expect(() => read(kept.replace('VVB000001', 'VVB000002'), settings)).toThrow('secret: this box has kept none');
    expect(() => read(kept.replace('ssid: x', 'ssid: y'), settings)).toThrow('5: wifi.psk: this box has kept none');
  });

  it('the secrets of a paybox.yaml are masked where it is printed', () => {
    const text = JSON.stringify(
      maskedBoxFile(
        Buffer.from(
          `${LEAST}secret: My-secret-number-1-of-a-test\nwifi: {ssid: x, psk: My-secret-number-3-of-a-test}\n`,
        ),
      ),
    );
    expect(text).not.toMatch(/my-secret/i);
    expect(text).toContain('***');
  });
});

describe('whatever is on the card', () => {
  const taken = (bytes: Uint8Array) => {
    try {
      return readBoxFile(bytes, undefined);
    } catch (error) {
      if (error instanceof ConfigError) return undefined;
      throw error;
    }
  };
  const example = `${LEAST}secret: My-secret-number-1-of-a-test\nwifi: {ssid: "Quán", psk: 'My-secret-number-2-of-a-test'}\nvoice: {driver: espeak}\n`;

  it('random bytes as paybox.yaml are accepted or refused with the reason', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => void taken(bytes)),
      { numRuns: 500 },
    );
  });

  it('a paybox.yaml that was cut, doubled or overwritten is accepted or refused, and leaves no secret', () => {
    const bytes = Buffer.from(example);
    const place = fc.nat({ max: bytes.length });
    const put = fc.constantFrom(
      '',
      '\t',
      ': ',
      '&a ',
      '*a',
      '- ',
      '{',
      '"',
      '#',
      '\n',
      '__proto__: 1\n',
      '<<: *a\n',
      '? ',
      '|',
      '!!js ',
    );
    fc.assert(
      fc.property(place, place, put, (from, to, text) => {
        const made = Buffer.concat([bytes.subarray(0, from), Buffer.from(text), bytes.subarray(to)]);
        const file = taken(made);
        for (const secret of [file?.settings.secret, file?.settings.wifi?.psk]) {
          if (secret !== undefined) expect(file?.withoutSecrets).not.toContain(secret);
        }
      }),
      { numRuns: 2_000 },
    );
  });
});
