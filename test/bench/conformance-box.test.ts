import { describe, expect, it } from 'vitest';
import { BOX_CHECKS } from '../../src/bench/conformance/box/checks/all.ts';
import { judge, screenProbe, troubles } from './conformance-box-stand.ts';

describe('a box of this house', () => {
  it.each(['mqtt', 'http'] as const)('holds every clause over %s', async (transport) => {
    const results = await judge({ breaks: [] }, { transport, probe: screenProbe });
    expect(troubles(results)).toEqual([]);
    expect(results).toHaveLength(BOX_CHECKS.length);
    expect(results.filter(({ outcome }) => outcome === 'passed').length).toBeGreaterThan(70);
  });
});

describe('the checks of a box', () => {
  it('have titles that tell them apart', () => {
    const names = BOX_CHECKS.map(({ clause, title }) => `${clause} ${title}`);
    expect(new Set(names).size).toBe(names.length);
  });
});
