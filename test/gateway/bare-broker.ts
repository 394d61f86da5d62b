import { onTestFinished } from 'vitest';
import { startBroker } from '../../src/gateway/boxes/broker.ts';
import { parseGatewayConfig } from '../../src/gateway/config/config.ts';
import { keptLog } from '../support/kept-log.ts';
import { directoryOf } from './directory.ts';
import { ACCOUNT, BOXES, OTHER_ACCOUNT } from './harness.ts';
import { storedOf, worldOf } from './stage-records.ts';

/** The embedded broker without a gateway, with its own limit of connections or another, until the test ends. */
export async function bareBroker(connectionsMax?: number) {
  const { log, lines } = keptLog();
  const config = parseGatewayConfig({ dataDir: 'none', accounts: [ACCOUNT, OTHER_ACCOUNT], boxes: BOXES }, 'test');
  const broker = await startBroker(
    { host: '127.0.0.1', port: 0 },
    worldOf({ config, log }),
    storedOf({ directory: directoryOf(config) }),
    { sessionInUse: () => undefined, connectionsMax, onBoxGone: () => undefined },
  );
  onTestFinished(() => broker.close());
  return { broker, lines };
}
