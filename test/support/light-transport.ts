import { expect, onTestFinished } from 'vitest';
import { mqttTransport } from '../../src/agent/transports/mqtt.ts';
import { systemClock } from '../../src/lib/clock.ts';

/** MQTT with the client of light boxes. */
export const lightTransport: typeof mqttTransport = {
  ...mqttTransport,
  open: async (options, io, signal) => {
    const opener = await mqttTransport.openLight?.(systemClock);
    onTestFinished(() => opener?.close());
    return opener?.open(options, io, signal) ?? expect.fail('no light boxes');
  },
};
