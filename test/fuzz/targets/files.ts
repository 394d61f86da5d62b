import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { loadAgentConfig } from '../../../src/device/agent/config.ts';
import { readPrinted } from '../../../src/device/display/drivers/escpos.ts';
import { decodeSheets, encodeSheets } from '../../../src/device/display/layout/fonts/sheet-file.ts';
import { decodeWav, encodeWav } from '../../../src/device/voice/wav.ts';
import { loadGatewayConfig } from '../../../src/gateway/config/config.ts';
import { ConfigError, PayboxError } from '../../../src/lib/errors.ts';
import type { Seeded } from '../../support/seeded.ts';
import { mutated, pick } from '../bytes.ts';
import { configFiles } from '../corpus.ts';
import { mutatedJson } from '../json.ts';
import { hold, holdNamed, pure, type Target } from '../target.ts';

const AGENT_FILES = configFiles('laptop', 'counter', 'nextion', 'dwin', 'escpos', 'led-matrix', 'usb-bitmap');
const GATEWAY_FILES = configFiles('gateway');

/** Lines that are legal YAML and mean trouble. */
const YAML_LINES = [
  'a: &a [x,x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b,*b]\nd: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c,*c]',
  ...[
    'a: &a [*a]',
    'a: *nobody',
    '<<: *nobody',
    '<<: {http: {port: 1}}',
    '? [a, b]\n: c',
    '? {a: b}\n: c',
    '- a',
    '--- a\n--- b',
  ],
  ...[
    '__proto__: {http: 1}',
    'constructor: 1',
    'http: {__proto__: {port: 1}}',
    '!!binary aGk=',
    '!!js/function x',
    'a: !!set {x}',
  ],
  ...[
    '%YAML 9.9\n---',
    'a: !!int zero',
    'a: .inf',
    'a: .nan',
    'a: 2001-12-14t21:59:43.10-05:00',
    'a: 0o17',
    'http: null',
    '# \0',
  ],
  ...[
    'a: |\n  text\n b',
    'a: "\\xff',
    "a: 'b",
    '\tx: 1',
    'a: @b',
    'a: `b`',
    '{',
    '[',
    ']',
    '"',
    '&a',
    '*',
    '? ',
    ': ',
    'null',
    '',
  ],
  ...['['.repeat(20_000), '- '.repeat(4_000), 'x: '.repeat(3_000), '\n'.repeat(60_000)],
];

function yamlOf(files: readonly Buffer[], chance: Seeded): Buffer {
  const kind = chance.below(4);
  if (kind === 0) return mutated(files, chance);
  const lines = pick(files, chance)
    .toString()
    .split('\n')
    .filter((line) => !/^\s*#/.test(line));
  const at = chance.below(lines.length + 1);
  if (kind === 1) lines.splice(at, 1);
  else if (kind === 2) lines.splice(at, 0, pick(YAML_LINES, chance));
  else return Buffer.from(pick(YAML_LINES, chance));
  return chance.chance(0.3) ? mutated([Buffer.from(lines.join('\n'))], chance) : Buffer.from(lines.join('\n'));
}

/** A configuration is taken, or refused with the name of the file and what was expected. */
function config(load: (path: string) => Promise<object>): Target['open'] {
  return async (world) => {
    const path = join(await world.folder(), 'box.yaml');
    return {
      feed: async (input) => {
        await writeFile(path, input);
        try {
          const loaded = await load(path);
          hold(Object.getPrototypeOf(loaded) === Object.prototype, () => 'a configuration with a prototype of its own');
          hold(Object.keys(Object.prototype).length === 0, () => 'every object has got new keys');
          return true;
        } catch (error) {
          if (!(error instanceof ConfigError)) throw error;
          hold(error.message.startsWith(`${path}:`), () => `names no file: ${error.message}`);
          holdNamed(error.message);
          return false;
        }
      },
    };
  };
}

const SOUND = { sampleRateHz: 22_050, channels: 1, samples: new Int16Array(200) };
const WAVS = [SOUND, { ...SOUND, channels: 2, sampleRateHz: 44_100 }].map(encodeWav);

const wav: Target['open'] = pure((input) => {
  try {
    const { samples, channels, sampleRateHz } = decodeWav(input, 'clip.wav');
    hold(
      samples.length <= input.length && samples.length % channels === 0 && sampleRateHz > 0,
      () => 'sound from nowhere',
    );
    return true;
  } catch (error) {
    if (!(error instanceof PayboxError)) throw error;
    holdNamed(error.message);
    return false;
  }
});

const SPEC = { weight: 400, sizePx: 8, charset: 'figures' } as const;
const GLYPH = { advance: 4.5, left: 0, top: 1, width: 2, height: 2, offset: 0 };
const SHEETS = [
  encodeSheets([{ spec: SPEC, lineHeight: 9, glyphs: new Map([['0', GLYPH]]), alpha: Buffer.alloc(16) }]),
];

/** Its checksum lets nothing through that was not written so; whoever reads it makes it anew after any error. */
const sheets: Target['open'] = pure((input) => {
  const faces = decodeSheets(input, [SPEC]);
  hold(faces === undefined || input.equals(Buffer.from(SHEETS[0] ?? [])), () => 'a damaged sheet was taken');
  return faces !== undefined;
});

const RECORDS = [
  { pushId: 'p1', receipt: null },
  { pushId: null, receipt: 't1' },
].map((it) => Buffer.from(JSON.stringify(it)));

const printed: Target['open'] = async (world) => {
  const path = join(await world.folder(), 'escpos.json');
  return {
    feed: async (input) => {
      await writeFile(path, input);
      const { pushId, receipt } = await readPrinted(path);
      for (const value of [pushId, receipt]) hold(value === null || typeof value === 'string', () => `${value}`);
      return pushId !== null || receipt !== null;
    },
  };
};

export const FILES: Target[] = [
  {
    name: 'agent configuration',
    inputs: 300,
    make: (chance) => yamlOf(AGENT_FILES, chance),
    open: config(loadAgentConfig),
  },
  {
    name: 'gateway configuration',
    inputs: 300,
    make: (chance) => yamlOf(GATEWAY_FILES, chance),
    open: config(loadGatewayConfig),
  },
  { name: 'sound clip', inputs: 2_000, make: (chance) => mutated(WAVS, chance), open: wav },
  { name: 'glyph sheet', inputs: 500, make: (chance) => mutated(SHEETS, chance), open: sheets },
  { name: 'printer record', inputs: 500, make: (chance) => mutatedJson(RECORDS, chance), open: printed },
];
