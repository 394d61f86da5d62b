import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { describe, expect, it } from 'vitest';
import { stringify } from 'yaml';
import { parseAgentConfig } from '../../src/device/agent/config.ts';
import { expectPlatform, missingHere } from '../../src/device/agent/platform.ts';
import { temporaryFolder } from '../support/net.ts';
import { run } from '../support/processes.ts';
import { cli } from '../support/program-code.ts';

const PLAIN = {
  box: { terminalCode: 'VVB000001', serialNumber: 'VVB900001', secret: 'Sample-box-secret-known-to-all' },
  link: { transport: 'http', url: 'http://127.0.0.1:1' },
  displays: [{ driver: 'browser' }, { driver: 'cd5220', path: '/dev/ttyUSB0' }],
  http: { port: 0 },
  dataDir: 'box',
};
const DEVICE = {
  ...PLAIN,
  displays: [{ driver: 'browser' }, { driver: 'framebuffer' }, { driver: 'led-matrix', rows: 64, cols: 64 }],
  voice: { driver: 'espeak' },
  light: { line: 5 },
  buttons: { lines: { repeat: 17 } },
};
const MISSING =
  'only Linux has displays.1 (framebuffer), displays.2 (led-matrix), voice.options.player (aplay), light (gpioset), buttons (gpiomon): this machine runs darwin';

describe('what only Linux has', () => {
  it('another platform names in one line what only Linux has, and Linux reports no problem', () => {
    const device = parseAgentConfig(DEVICE, 'test');
    expect(missingHere(device, 'linux')).toBeUndefined();
    expect(missingHere(device, 'darwin')).toBe(MISSING);
    expect(() => expectPlatform(device, 'box.yaml', 'linux')).not.toThrow();
    expect(() => expectPlatform(device, 'box.yaml', 'win32')).toThrow(/^box\.yaml: only Linux has .* runs win32$/);
    const spoken = { ...PLAIN, voice: { driver: 'espeak', options: { player: { kind: 'paplay' } } } };
    expect(missingHere(parseAgentConfig(spoken, 'test'), 'darwin')).toBeUndefined();
    const onPage = { ...PLAIN, voice: { driver: 'page' } };
    expect(missingHere(parseAgentConfig(onPage, 'test'), 'darwin')).toBeUndefined();
    for (const platform of ['linux', 'darwin', 'win32']) {
      expect(missingHere(parseAgentConfig(PLAIN, 'test'), platform)).toBeUndefined();
    }
  });

  it('on another platform, agent, config check and doctor say what only Linux has', async () => {
    const folder = await temporaryFolder();
    const [file, plain, other] = ['device.yaml', 'plain.yaml', 'darwin.mjs'].map((it) => join(folder, it)) as [
      string,
      string,
      string,
    ];
    await writeFile(file, stringify(DEVICE));
    await writeFile(plain, stringify(PLAIN));
    await writeFile(other, "Object.defineProperty(process, 'platform', { value: 'darwin' });\n");
    const env = { NODE_OPTIONS: `${process.env.NODE_OPTIONS ?? ''} --import=${pathToFileURL(other)}` };
    const onMac = async (...args: string[]) => {
      const running = run(cli(), args, env);
      return { code: await running.ended, output: running.output() };
    };
    const agent = await onMac('agent', '--config', file);
    expect([agent.code, agent.output]).toEqual([2, expect.stringContaining(`device.yaml: ${MISSING}`)]);
    expect(await onMac('config', 'check', file)).toEqual({
      code: 0,
      output: `${file} is a valid agent configuration\n${MISSING}\n`,
    });
    expect(await onMac('config', 'check', plain)).toEqual({
      code: 0,
      output: `${plain} is a valid agent configuration\n`,
    });
    const doctor = await onMac('doctor', '--config', file, '--json');
    expect(doctor.output).toContain(`"check":"platform","result":"failed","found":"${MISSING}"`);
  });
});
