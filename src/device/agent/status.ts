import { isExposed } from '../../lib/tls.ts';
import { statusView } from '../box/view.ts';
import type { BoxStatus, Journal } from './contract.ts';
import type { Link } from './link/link.ts';
import type { Loop } from './loop.ts';
import type { Peripherals } from './peripherals/parts.ts';
import type { Screen } from './screen/screen.ts';
import { LINK_SCHEMES } from './transports/registry.ts';

/** The parts that make up a status. */
export interface StatusSources {
  loop: Loop;
  journal: Journal;
  /** The first display confirms pushes. */
  screens: readonly [Screen, ...Screen[]];
  link: Link;
  parts: Peripherals;
}

/** Returns the current `/status` of the box. */
export function statusOf(
  setup: { link: { transport: string; gateway: string }; version: string },
  { loop, journal, screens, link, parts }: StatusSources,
): BoxStatus {
  const { transport, gateway } = setup.link;
  const { connectedAtMs, reason } = link.status();
  const connectedAt = connectedAtMs === undefined ? null : new Date(connectedAtMs).toISOString();
  return {
    ...statusView(loop.state),
    display: screens[0].status(),
    displays: screens.map((screen) => screen.status()),
    ...parts.status(),
    journal: { ...journal.status(), unwritten: loop.unwritten },
    link: { transport, gateway, plain: isExposed(gateway, LINK_SCHEMES), connectedAt, reason: reason ?? null },
    version: setup.version,
  };
}
