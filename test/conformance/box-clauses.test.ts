import { describe, expect, it } from 'vitest';
import { BOX_CHECKS } from '../../src/bench/judges/box/checks/all.ts';
import { MQTT_MUTANTS } from './mutants/mqtt.ts';
import { STATE_MUTANTS } from './mutants/state.ts';
import { TLS_MUTANTS } from './mutants/tls.ts';
import { WIRE_MUTANTS } from './mutants/wire.ts';

const MUTANTS = [WIRE_MUTANTS, STATE_MUTANTS, MQTT_MUTANTS, TLS_MUTANTS].flatMap((table) => Object.entries(table));

describe('the judge of a box', () => {
  it('the judge of a box has a mutant for each clause that it judges, and no mutant of a clause that it does not judge', () => {
    const judged = [...new Set(BOX_CHECKS.map(({ clause }) => clause))].sort();
    const broken = [...new Set(MUTANTS.flatMap(([, { breaks }]) => breaks))].sort();
    expect(broken).toEqual(judged);
  });

  it('the mutants of the judge of a box have distinct names', () => {
    const names = MUTANTS.map(([name]) => name);
    expect(names.filter((name, index) => names.indexOf(name) !== index)).toEqual([]);
  });
});
