import { expect, onTestFinished } from 'vitest';
import type { GatewayAddress, Transport } from '../../src/device/agent/contract.ts';
import { httpTransport } from '../../src/device/agent/transports/http.ts';
import { mqttTransport } from '../../src/device/agent/transports/mqtt.ts';
import { systemClock } from '../../src/lib/clock.ts';

/** A transport by the connections of light boxes. */
export function lightOf<Options extends GatewayAddress>(transport: Transport<Options>): Transport<Options> {
  return {
    ...transport,
    open: async (options, io, signal) => {
      const opener = await transport.openLight?.(systemClock);
      onTestFinished(() => opener?.close());
      return opener?.open(options, io, signal) ?? expect.fail('no light boxes');
    },
  };
}

export const lightMqtt = lightOf(mqttTransport);
export const lightHttp = lightOf(httpTransport);
