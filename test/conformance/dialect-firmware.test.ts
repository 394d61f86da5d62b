import { expect, it } from 'vitest';
import { DIALECT_CHECKS } from '../../src/bench/judges/dialect/checks/all.ts';
import type { AskPerson } from '../../src/bench/judges/dialect/subject.ts';
import type { FirmwareBox } from '../support/firmware-box.ts';
import { seen, stage, titles } from './dialect-firmware-fixture.ts';
import { dialectVerdicts } from './dialect-fixture.ts';

it('DIA-10 firmware that listens after its start only fails by name, and what it shows is judged before', async () => {
  const groups = ['DIA-1', 'DIA-5', 'DIA-7'];
  const checks = DIALECT_CHECKS.filter(({ clause }) => groups.includes(clause));
  const results = await dialectVerdicts(await stage({ resubscribes: false }, seen), checks, false);
  const failed = ['DIA-1 enrols and listens on its topic again after each reconnect'];
  expect(titles(results, 'failed')).toEqual(failed);
  expect(titles(results, 'missing')).toEqual([]);
  const deaf = results.filter(({ reason }) => reason.includes('restart it, or give --restart-command'));
  expect(deaf.length).toBeGreaterThan(1);
  expect(results.find(({ title }) => title === 'N12 takes the QR away')?.outcome).toBe('passed');
}, 240_000);

it('DIA-3 a box that asked in vain, and asks still, is not accused of believing what it has not asked for', async () => {
  const wanted = ['asks again while nobody answers', 'an answer that it has not asked for changes nothing'];
  const checks = DIALECT_CHECKS.filter(({ title }) => wanted.includes(title));
  const results = await dialectVerdicts(await stage({ believesEachAnswer: true }, seen), checks, false);
  expect(results.map(({ outcome }) => outcome)).toEqual(['differs', 'passed']);
}, 240_000);

it('DIA-8 a page that answers no more after a message is the fault of the box', async () => {
  const checks = DIALECT_CHECKS.filter(({ title }) => title.startsWith('survives messages that are longer'));
  const subject = await stage({}, (box) => ({
    see: async () => (box.dropped.length === 0 ? seen(box).see() : Promise.reject(new Error('ECONNRESET'))),
  }));
  const [result] = await dialectVerdicts(subject, checks, false);
  expect(result?.outcome).toBe('failed');
  expect(result?.reason).toContain('since then the screen cannot be seen: ECONNRESET');
}, 240_000);

it('the judge asks a person where no program sees the screen, and takes a no as a verdict', async () => {
  const asked: string[] = [];
  const answers =
    (box: FirmwareBox): AskPerson =>
    async (question) => {
      asked.push(question);
      if (question.startsWith('Did the box say')) return undefined;
      const isOrder = question.includes('an order of');
      return isOrder ? box.screen.kind === 'dynamic' : !question.includes('its account');
    };
  const subject = await stage({}, (box) => ({ ask: answers(box) }));
  const checks = DIALECT_CHECKS.filter(({ clause }) => ['DIA-4', 'DIA-5', 'DIA-6'].includes(clause));
  const results = await dialectVerdicts(subject, checks, false);
  const reasonOf = (title: string) => results.find((it) => it.title === title)?.reason;
  expect(reasonOf('shows the static QR of its account (N16)')).toBe(
    'somebody at the box says no to: Is the QR of its account, for any amount on the screen?',
  );
  expect(titles(results, 'passed')).toContain('DIA-5 shows the QR of an order (N17)');
  expect(reasonOf('says a payment aloud once, and another one too')).toContain('nobody can tell: Did the box say');
  expect(asked.some((it) => /^Is the QR of an order of \d\d,\d{3} đồng on the screen\?$/.test(it))).toBe(true);
}, 240_000);
