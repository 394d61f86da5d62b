import { ConfigError } from '../../lib/errors.ts';
import { DISPLAY_DRIVERS } from '../display/registry.ts';
import type { AgentConfig } from './config.ts';

const LINUX_PLAYER = 'aplay';

/**
 * Returns the parts of a configuration that need Linux, in one line; undefined on Linux or if there are none.
 * `platform` is as in `process.platform`.
 */
export function missingHere(config: AgentConfig, platform: string = process.platform): string | undefined {
  if (platform === 'linux') return undefined;
  const { displays, voice, light, buttons } = config;
  const parts = [
    ...displays.flatMap(({ driver }, i) =>
      DISPLAY_DRIVERS.get(driver)?.needsLinux ? [`displays.${i} (${driver})`] : [],
    ),
    ...(voice !== undefined && isByAlsa(voice) ? ['voice.options.player (aplay)'] : []),
    ...(light === undefined ? [] : ['light (gpioset)']),
    ...(buttons === undefined ? [] : ['buttons (gpiomon)']),
  ];
  return parts.length === 0 ? undefined : `only Linux has ${parts.join(', ')}: this machine runs ${platform}`;
}

/** Advises the user of a machine without Linux. */
export const ELSEWHERE_FIX = 'take a display browser, terminal, png or one at a serial port, and voice.driver page';

/**
 * Throws a ConfigError if a configuration needs Linux and this machine has another system. `file` is its name in the
 * message.
 */
export function expectPlatform(config: AgentConfig, file: string, platform?: string): void {
  const missing = missingHere(config, platform);
  if (missing !== undefined) throw new ConfigError(`${file}: ${missing}`, ELSEWHERE_FIX);
}

/** Returns whether ALSA plays a voice, as it does when the options name no player. The box's own page needs none. */
function isByAlsa({ driver, options }: NonNullable<AgentConfig['voice']>): boolean {
  if (driver === 'page') return false;
  const { player } = options;
  return typeof player !== 'object' || player === null || !('kind' in player) || player.kind === LINUX_PLAYER;
}
