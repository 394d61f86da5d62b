import { ConfigError } from '../../lib/errors.ts';
import { version } from '../../lib/version.ts';
import { DISPLAY_DRIVERS } from '../display/registry.ts';
import type { AgentConfig } from './config.ts';
import { TRANSPORTS } from './transports/registry.ts';
import type { AgentSetup } from './world.ts';

/** Builds the agent's setup from its configuration. */
export function setupOf(config: AgentConfig): AgentSetup {
  const {
    box,
    enrolment,
    link,
    displays,
    http,
    voice,
    light,
    buttons,
    dataDir,
    paidHoldSeconds,
    endedHoldSeconds,
    onStop,
    sandboxMark,
    faults,
  } = config;
  const transport = TRANSPORTS.get(link.transport);
  if (transport === undefined) throw new ConfigError(`link.transport: no transport ${link.transport}`);
  const [first, ...others] = displays.map(({ driver, ...options }) => {
    const registered = DISPLAY_DRIVERS.get(driver);
    if (registered === undefined) throw new ConfigError(`displays: no driver ${driver}`);
    return { driver, open: registered.configure(options).open };
  });
  if (first === undefined) throw new ConfigError('displays: a box has at least one display');
  const { transport: name, ...options } = link;
  const linkOptions = transport.options.parse(options);
  return {
    // The service identifies the box by other means, so the box has no secret.
    identity: transport.ownLogin === undefined ? box : { ...box, secret: '' },
    enrolment,
    version: version(),
    displays: [first, ...others],
    link: { transport: name, gateway: linkOptions.url, open: (io, signal) => transport.open(linkOptions, io, signal) },
    http,
    parts: { voice, light, buttons },
    dataDir,
    paidHoldMs: paidHoldSeconds * 1000,
    endedHoldMs: endedHoldSeconds * 1000,
    onStop,
    sandboxMark,
    faults,
  };
}
