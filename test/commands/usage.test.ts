import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { copyFile, mkdir } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseScenario } from '../../src/bench/scenarios/scenario.ts';
import { VERBS } from '../../src/bench/scenarios/steps.ts';
import { wrappedHelp } from '../../src/commands/shared/program.ts';
import { GATEWAY_TRANSPORTS } from '../../src/device/agent/transports/registry.ts';
import { freePort, temporaryFolder } from '../support/net.ts';
import { payboxToEnd, run } from '../support/processes.ts';
import { SOURCE_CLI } from '../support/program-code.ts';
import { faultTable } from './readme-faults.ts';

const commandsManual = readFileSync(resolve(import.meta.dirname, '../../src/commands/README.md'), 'utf8');
const manual = readFileSync(resolve(import.meta.dirname, '../../src/bench/README.md'), 'utf8');

const EXAMPLES = resolve(import.meta.dirname, '../../device-config');

describe('the command line', () => {
  it('the command line prints its version and its --help', async () => {
    expect(await payboxToEnd('--version')).toEqual({ code: 0, output: '0.1.0\n' });
    const { code, output } = await payboxToEnd('--help');
    expect(code).toBe(0);
    expect(output).toContain('paybox push --amount 50000 --content DH001');
    expect(output).toContain('130 interrupted');
  });

  it('the manual has every command and every option of up', async () => {
    const { output: help } = await payboxToEnd('--help');
    const commands = [...help.matchAll(/^ {2}(\w+) (?:\[options\]| {2})/gm)].map((match) => match[1] ?? '');
    expect(commands).toEqual(expect.arrayContaining(['up', 'gateway', 'agent', 'push', 'pay', 'config', 'doctor']));
    for (const command of commands.filter((name) => name !== 'help'))
      expect(commandsManual).toContain(`paybox ${command}`);
    const { output: upHelp } = await payboxToEnd('up', '--help');
    const options = [...upHelp.matchAll(/^ {2}(--[\w-]+)/gm)].map((match) => match[1] ?? '');
    expect(options.length).toBeGreaterThan(8);
    for (const option of options) expect(commandsManual).toContain(option);
  });

  it('the manual of the bench has every command, option, step and fault', async () => {
    const { output: help } = await payboxToEnd('bench', '--help');
    const commands = [...help.matchAll(/^ {2}(\w+) \[options\]/gm)].map((match) => match[1] ?? '');
    expect(commands).toEqual(expect.arrayContaining(['run', 'check', 'serve', 'list']));
    for (const command of commands) expect(manual).toContain(`paybox bench ${command}`);
    for (const command of [['bench', 'run'], ['bench', 'serve'], ['fleet']]) {
      const { output } = await payboxToEnd(...command, '--help');
      const options = [...output.matchAll(/^ {2}(--[\w-]+)/gm)].map((match) => match[1] ?? '');
      expect(options.length).toBeGreaterThan(6);
      for (const option of options) expect(manual).toContain(option);
    }
    for (const verb of VERBS) expect(manual).toMatch(new RegExp(`^\\| .*\`${verb}\``, 'm'));
    const [, faults = ''] = /<!-- faults:begin -->\n\n([\s\S]*?)\n\n<!-- faults:end -->/.exec(manual) ?? [];
    expect(faults.split('\n')).toEqual(faultTable().split('\n'));
    const transports = `--transport ${[...GATEWAY_TRANSPORTS.keys()].join('|')}`;
    for (const text of [commandsManual, manual]) expect(text).toContain(transports);
  });

  it('the scenario in the manual of the bench can be read', () => {
    const [, yaml = ''] = /\n( {4}name: Tea[\s\S]*?)\n\n/.exec(manual) ?? [];
    expect(parseScenario(yaml.replaceAll(/^ {4}/gm, ''), 'manual.yaml').steps).toHaveLength(6);
  });

  it.each([
    ['no command', []],
    ['an unknown command', ['dance']],
    ['an unknown option', ['up', '--sideways']],
    ['a port that is none', ['up', '--http-port', '70000']],
    ['an amount that is none', ['push', '--amount', '50,000', '--content', 'DH1']],
    ['a missing option', ['agent']],
    ['an unknown display', ['up', '--no-open', '--display', 'cinema', '--data', '/nonexistent/paybox']],
    ['an unknown way to authorize', ['up', '--no-open', '--callback-auth', 'maybe', '--data', '/nonexistent/paybox']],
    ['an authorization for nobody', ['up', '--no-open', '--callback-auth', 'bearer-file:/nonexistent/secret']],
    ['a password among the arguments', ['push', '--amount', '1', '--content', 'DH1', '--password', 'x']],
  ])('ends with 2 and says what is wrong for %s', async (_what, args) => {
    const { code, output } = await payboxToEnd(...args);
    expect(code).toBe(2);
    expect(output.length).toBeGreaterThan(20);
    expect(output).not.toMatch(/\n\s+at /);
  });

  it.each([
    [['bench', 'run', 'hapy-path'], 'did you mean happy-path?'],
    [['push', '--amont', '5000', '--content', 'A'], "unknown option '--amont'; did you mean --amount?"],
    [['nonsense', '--help'], "unknown command 'nonsense'"],
    [['bench', 'rn', '--help'], "unknown command 'rn'; did you mean run?"],
    [['help', 'psh'], "unknown command 'psh'; did you mean push?"],
    [['fleet', '--boxes', '1', '--transport', 'htp'], 'did you mean http?'],
    [['provision', '--out', '/proc/nope', '--box', 'VVB000001:VVB900001'], '--out /proc/nope: ENOENT'],
    [['config', 'schema', 'agnet'], 'did you mean agent?'],
    [
      ['up', '--display', 'brwser', '--data', '/nonexistent/paybox'],
      'expected browser, terminal or png; did you mean browser?',
    ],
    [
      ['gateway', '--config', join(EXAMPLES, 'nextion.yaml')],
      `nextion.yaml: is the configuration of an agent, expected the configuration of a gateway\n  paybox agent --config ${EXAMPLES}`,
    ],
    [
      ['agent', '--config', join(EXAMPLES, 'gateway.yaml')],
      `gateway.yaml: is the configuration of a gateway, expected the configuration of an agent\n  paybox gateway --config ${EXAMPLES}`,
    ],
    [['doctor', '--config', join(EXAMPLES, 'gateway.yaml')], `or paybox doctor --gateway ${EXAMPLES}`],
    [['doctor', '--gateway', join(EXAMPLES, 'paybox.yaml')], "is the file of a box's boot partition"],
  ])('names the word, or the command, that was meant: %s', async (args, words) => {
    const { code, output } = await payboxToEnd(...args);
    expect([code, output]).toEqual([2, expect.stringContaining(words)]);
    expect(output).not.toContain('Usage:');
  });

  it('no line of a help is wider than the terminal but a command that is copied', async () => {
    for (const args of [
      [],
      ['bench', 'run'],
      ['judge', 'service'],
      ['judge', 'dialect'],
      ['fleet'],
      ['admin', 'tokens'],
      ['provision'],
    ]) {
      const { output } = await payboxToEnd(...args, '--help');
      const wide = output.split('\n').filter((line) => line.length > 80 && !line.startsWith('  $ paybox '));
      expect([args, wide]).toEqual([args, []]);
    }
  });

  it.each([40, 64, 200])('a help wraps its texts at %i columns', (columns) => {
    const text =
      '\nTwo words:\n  $ paybox push --amount 50000    a QR appears on the box, which shows it\n\nExit codes: 0 done, 1 it ran and the answer is no, 2 usage';
    const wrapped = wrappedHelp(text, columns);
    expect(wrapped.split('\n').filter((line) => line.length > columns)).toEqual([]);
    expect(wrapped.replaceAll(/\s+/g, ' ')).toBe(text.replaceAll(/\s+/g, ' '));
    expect(wrapped).toContain('  $ paybox push --amount 50000');
  });

  it('prints the help of a command, wherever --help stands', async () => {
    for (const args of [
      ['push', '--help'],
      ['help', 'push'],
      ['push', '--amount', '1', '-h'],
    ]) {
      const { code, output } = await payboxToEnd(...args);
      expect([code, output]).toEqual([0, expect.stringContaining('Usage: paybox push')]);
    }
  });

  it.each([
    [['--display', 'cinema'], '--display cinema: expected browser, terminal or png'],
    [['--callback-url', 'shop'], '--callback-url shop: expected an http:// or https:// address'],
    [['--callback-auth', 'bearer-file:/dev/null'], '--callback-auth needs --callback-url'],
    [['--host', '192.0.2.1'], '--host 192.0.2.1: expected 127.0.0.1, or 0.0.0.0 for all addresses'],
    [['--host', '0.0.0.0', '--live-demo'], '--host: expected without --live-demo'],
    [['--data', '/proc/nope'], '--data /proc/nope cannot be written'],
  ])('names the option of up that is wrong: %s', async (args, words) => {
    const { code, output } = await payboxToEnd('up', '--no-open', '--data', await temporaryFolder(), ...args);
    expect([code, output]).toEqual([2, expect.stringContaining(words)]);
  });

  it('the command line says how else to run where Node reads no TypeScript, in node_modules', async () => {
    const folder = join(await temporaryFolder(), 'node_modules', 'paybox', 'src');
    await mkdir(folder, { recursive: true });
    await copyFile(SOURCE_CLI, join(folder, 'cli.js'));
    const installed = run(process.execPath, [join(folder, 'cli.js'), '--version']);
    await once(installed.child, 'close');
    expect(installed.output()).toMatch(/^paybox does not run as an installed package\n.*npm run bundle\n$/);
    expect(installed.child.exitCode).toBe(2);
  });

  it('the command line ends with 3 and says what to do when no gateway answers', async () => {
    const url = `http://127.0.0.1:${await freePort()}/vqr`;
    for (const args of [['push'], ['pay']]) {
      const { code, output } = await payboxToEnd(...args, '--amount', '50000', '--content', 'DH1', '--gateway', url);
      expect(code).toBe(3);
      expect(output).toContain(url);
      expect(output).toContain('npx --no -- paybox up');
    }
  });
});
