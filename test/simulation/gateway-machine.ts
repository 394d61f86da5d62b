import { Hub } from '../../src/gateway/boxes/hub.ts';
import type { TrafficLog } from '../../src/gateway/common/traffic-log.ts';
import type { GatewayConfig } from '../../src/gateway/config/config.ts';
import { attemptCallback, type MakeAttempt } from '../../src/gateway/money/callbacks/attempt.ts';
import { CallbackDispatcher } from '../../src/gateway/money/callbacks/dispatcher.ts';
import type { Service } from '../../src/gateway/partner/service.ts';
import { rowsOfFile } from '../../src/gateway/registry/seed.ts';
import { NO_METRICS, serviceAlone } from '../gateway/service-alone.ts';
import { only, storedIn, worldOf } from '../gateway/stage-records.ts';
import type { GatewayDisk } from './gateway-disk.ts';
import { type Calendar, Run } from './machine.ts';
import { traceLog } from './quiet-log.ts';
import type { World } from './world.ts';

const RESTART_MS = 500;

const NO_TRAFFIC_LOG = only<TrafficLog>({ box: () => undefined, callback: () => undefined });

/** A gateway whose program may end at any moment and start again over the same disk. */
export class GatewayMachine {
  readonly calendar: Calendar = { offsetMs: 0 };
  readonly #world: World;
  readonly #disk: GatewayDisk;
  readonly #config: GatewayConfig;
  #run: Run | undefined;
  #service: Service | undefined;
  #dispatcher: CallbackDispatcher | undefined;

  constructor(world: World, disk: GatewayDisk, config: GatewayConfig) {
    this.#world = world;
    this.#disk = disk;
    this.#config = config;
    for (const [table, rows] of Object.entries(rowsOfFile(config, 0))) disk.put(table, rows);
  }

  get isOn(): boolean {
    return this.#run?.alive === true;
  }

  /** What partners may call, and the run that answers them; undefined while it is off. */
  get service(): { service: Service; run: Run } | undefined {
    const [service, run] = [this.#service, this.#run];
    return service === undefined || run?.alive !== true ? undefined : { service, run };
  }

  async resend(callbackId: string): Promise<void> {
    await this.#dispatcher?.resend(callbackId);
  }

  /** Starts, and if that fails, again, as its supervisor does. */
  start(): void {
    if (this.isOn) return;
    const run = new Run(this.#world.clock, this.calendar);
    this.#run = run;
    this.#open(run).catch(() => {
      this.kill();
      this.#world.clock.after(RESTART_MS, () => this.start());
    });
  }

  /** As `startGateway`, without the ports. */
  async #open(run: Run): Promise<void> {
    const { chance, network, partner } = this.#world;
    const log = traceLog('gateway', (...words) => run.alive && this.#world.trace(...words));
    const store = this.#disk.storeFor(run, log);
    const gateway = worldOf({
      ...{ config: this.#config, clock: run, random: chance, log, trafficLog: NO_TRAFFIC_LOG },
    });
    const stored = storedIn(store, gateway);
    await store.orders.failUnfinished(run.wallMs(), this.#config.confirm);
    const hub = new Hub(gateway, stored);
    const post = partner.postFor(run);
    const attempt: MakeAttempt = (to, { clock }, stop) => attemptCallback(to, { clock, post }, stop);
    const dispatcher = new CallbackDispatcher(gateway, stored, NO_METRICS, attempt);
    this.#dispatcher = dispatcher;
    this.#service = serviceAlone(gateway, stored, hub, { hub, dispatcher });
    dispatcher.start();
    network.stationIs({
      run,
      take: (terminalCode, connection, message) => hub.receive(terminalCode, connection, message),
      lost: (terminalCode, by) => hub.disconnected(terminalCode, by, 'the network lost it'),
    });
  }

  /** Ends its program at this very instant. */
  kill(): void {
    if (this.#run?.alive !== true) return;
    this.#run.kill();
    this.#disk.rollback();
    this.#service = undefined;
    this.#dispatcher = undefined;
    this.#world.network.stationIs(undefined);
  }
}
