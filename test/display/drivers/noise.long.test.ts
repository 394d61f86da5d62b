import { describe, it } from 'vitest';
import { expectShownQrs, PANELS } from './noise-fixture.ts';

describe.each(PANELS)('noise on the wire of a %s panel', (...panel) => {
  it.each([2, 3])(`a noisy ${panel[0]} wire ends no draw well that does not show its QR, by seed %i`, (seed) =>
    expectShownQrs(panel, seed),
  );
});
