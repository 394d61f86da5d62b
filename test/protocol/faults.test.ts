import { expect, it } from 'vitest';
import { FAULT_NAMES, faultKind, faultOfContent, faultOrder, magicContent } from '../../src/protocol/faults.ts';
import { LIMITS } from '../../src/protocol/fields.ts';
import { clauseText, readProtocol } from './document.ts';

const AT_GATEWAY = FAULT_NAMES.filter((name) => faultKind(name).place !== 'box');

it.each(AT_GATEWAY)('FLT-4 the magic content of %s goes into every call, and names it alone', (name) => {
  const content = magicContent(name);
  expect(content).toMatch(/^FAULT [A-Z0-9 ]+$/);
  expect(content.length).toBeLessThanOrEqual(LIMITS.testCallbackContentMax);
  expect(FAULT_NAMES.filter((it) => magicContent(it) === content)).toEqual([name]);
  expect(faultOfContent(content)).toBe(name);
});

it.each([
  '',
  'DH001',
  'FAULT',
  'FAULT ',
  'fault push twice',
  'FAULT PUSH-TWICE',
  'FAULT PUSH TWICE ',
  'FAULT DISK FULL',
])('FLT-4 the content "%s" orders nothing', (content) => {
  expect(faultOfContent(content)).toBeUndefined();
});

it('FLT-5 FLT-6 FLT-7 FLT-8 FLT-9 each fault of the gateway is named by the clause of its place', () => {
  const protocol = readProtocol();
  const clauses = { service: 5, push: 6, payment: 7, callback: 8, link: 9 };
  for (const [place, number] of Object.entries(clauses)) {
    const clause = clauseText(protocol, `FLT-${number}`);
    const names = AT_GATEWAY.filter((name) => faultKind(name).place === place && name !== 'paid-before');
    expect(names.filter((name) => !clause.includes(`\`${name}\``))).toEqual([]);
  }
});

it.each([
  [{}, 'fault: expected one of service-500'],
  [{ fault: 'nothing' }, 'fault: expected one of service-500'],
  [{ fault: 'link-cut', speed: 1 }, 'speed'],
  [{ fault: 'link-cut', times: 0 }, 'times'],
  [{ fault: 'link-cut', times: 1.5 }, 'times'],
  [{ fault: 'link-cut', seconds: 0 }, 'seconds'],
  [{ fault: 'link-cut', seconds: 100_000 }, 'seconds'],
  [{ fault: 'link-cut', chance: 1.1 }, 'chance'],
  [{ fault: 'link-cut', seed: -1 }, 'seed'],
  [{ fault: 'link-cut', box: 'X' }, 'box: VVB followed by six digits'],
  [{ fault: 'push-lost', content: 'x'.repeat(100) }, 'content'],
])('FLT-2 an order that is %j is refused by name', (order, named) => {
  const parsed = faultOrder.safeParse(order);
  const issues = parsed.error?.issues.map((it) => `${it.path.join('.')}: ${it.message}`) ?? [];
  expect(issues.join('\n')).toContain(named);
});
