import { access, constants, stat } from 'node:fs/promises';
import { resolve } from 'node:path';
import { systemClock, withDeadline } from '../../lib/clock.ts';
import { ConfigError, PayboxError, reasonOf, systemCodeOf } from '../../lib/errors.ts';
import { stderrLog } from '../../lib/log.ts';
import type { AgentConfig } from '../agent/config.ts';
import type { Phrase, Speech } from '../voice/contract.ts';
import { reasonAndFix } from '../voice/fault.ts';
import { runProgram } from '../voice/program.ts';
import { SPEAKER_DRIVERS, type VoiceOptions } from '../voice/registry.ts';
import { announcementText, REPETITION_TRIED, vocabulary } from '../voice/words.ts';
import { type Finding, failed, well } from './findings.ts';

/** This is longer than the speaker's own timeouts together, so that the speaker reports its own error. */
const VOICE_TIMEOUT_MS = 20_000;
const VERSION_TIMEOUT_MS = 5_000;
const PART_FIX = 'check the voice part of the configuration';

/** Checks the attached devices, without sound or light, and without taking them from a running agent. */
export async function partFindings({ voice, light, buttons }: AgentConfig): Promise<Finding[]> {
  return [
    ...(voice === undefined ? [] : [await voiceFinding(voice)]),
    ...(light === undefined ? [] : [await gpioFinding('light', light)]),
    ...(buttons === undefined ? [] : [await gpioFinding('buttons', buttons)]),
  ];
}

async function voiceFinding(options: VoiceOptions): Promise<Finding> {
  const check = `voice ${options.driver}`;
  const abort = new AbortController();
  try {
    const finding = await withDeadline(systemClock, VOICE_TIMEOUT_MS, tryVoice(check, options, abort.signal));
    return finding ?? failed(check, new Error(`no sound within ${VOICE_TIMEOUT_MS} ms`), PART_FIX);
  } catch (error) {
    return failed(check, error, PART_FIX);
  } finally {
    abort.abort();
  }
}

/** Renders every word of amounts, and plays silence. Throws the error of the output. */
async function tryVoice(check: string, given: VoiceOptions, signal: AbortSignal): Promise<Finding> {
  const driver = SPEAKER_DRIVERS.get(given.driver);
  if (driver === undefined) throw new ConfigError(`voice: no driver ${given.driver}`);
  const io = { clock: systemClock, log: stderrLog(), onPage: () => undefined };
  const { speeches, output } = driver.configure(given.options).open(io);
  await output.check(signal);
  const phrase: Phrase = { text: announcementText(0), number: vocabulary(given.zero).join(' ') };
  const { speaks, faults } = await tried(speeches, phrase, signal);
  const [first, ...others] = faults;
  if (first === undefined) {
    if (!speaks) return well(check, 'plays its chime, without words');
    const again = await tried(speeches, REPETITION_TRIED, signal);
    if (again.speaks) return well(check, 'speaks');
    const { found, fix } = failed(check, again.faults[0], PART_FIX);
    return { check, result: 'warning', found: `the key that repeats a payment only shows it: ${found}`, fix };
  }
  const { found, fix } = failed(check, first, PART_FIX);
  const all = [found, ...others.map(reasonAndFix)].join('; ');
  return speaks
    ? { check, result: 'warning', found: `another voice speaks instead: ${all}`, fix }
    : { check, result: 'failed', found: `only the chime rings: ${all}`, fix };
}

/** Renders with the first speech that can. Returns whether one could, and the errors of the earlier ones. */
async function tried(speeches: readonly Speech[], phrase: Phrase, signal: AbortSignal) {
  const faults: unknown[] = [];
  for (const speech of speeches) {
    try {
      await speech.render(phrase, signal);
      return { speaks: true, faults };
    } catch (error) {
      faults.push(error);
    }
  }
  return { speaks: false, faults };
}

/** Checks whether the GPIO tool is installed in a supported version, and the chip exists. */
async function gpioFinding(check: string, { command, chip }: { command: string; chip: string }): Promise<Finding> {
  const program = { command, args: ['--version'], debianPackage: 'gpiod', advice: 'install libgpiod 1 or 2' };
  try {
    const text = String(await runProgram(program, systemClock, VERSION_TIMEOUT_MS, new AbortController().signal));
    const [version = ''] = text.split('\n');
    if (!/\bv[12]\./.test(version)) throw gpioFault(`${command} has an unknown version: ${version}`, program.advice);
    return well(check, `${await chipFile(chip)}, ${version}`);
  } catch (error) {
    return failed(check, error, program.advice);
  }
}

/** Returns the device file of a chip, which the tools accept as path, name or number. Throws a PayboxError. */
async function chipFile(chip: string): Promise<string> {
  const file = resolve('/dev', /^\d+$/.test(chip) ? `gpiochip${chip}` : chip);
  try {
    if (!(await stat(file)).isCharacterDevice()) throw new Error('not a device');
    await access(file, constants.R_OK | constants.W_OK);
    return file;
  } catch (error) {
    const fix =
      systemCodeOf(error) === 'EACCES'
        ? 'add this user to the group that owns it, mostly gpio'
        : 'see `gpiodetect` for the chips of this machine, and correct chip';
    throw gpioFault(`${file}: ${systemCodeOf(error) ?? reasonOf(error)}`, fix);
  }
}

function gpioFault(what: string, fix: string): PayboxError {
  return new PayboxError('GPIO_FAULT', what, { severity: 'retryable', fix });
}
