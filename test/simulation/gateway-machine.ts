import { Hub } from '../../src/gateway/boxes/hub.ts';
import { attemptCallback } from '../../src/gateway/callbacks/attempt.ts';
import { CallbackDispatcher } from '../../src/gateway/callbacks/dispatcher.ts';
import { Changes } from '../../src/gateway/changes.ts';
import type { GatewayConfig } from '../../src/gateway/config.ts';
import { createDirectory } from '../../src/gateway/directory.ts';
import type { Metrics } from '../../src/gateway/metrics.ts';
import { rowsOfFile } from '../../src/gateway/registry/seed.ts';
import { QrMakers } from '../../src/gateway/service/qr-makers.ts';
import { createReceivePayment } from '../../src/gateway/service/receive-payment.ts';
import { Service } from '../../src/gateway/service/service.ts';
import type { TrafficLog } from '../../src/gateway/traffic-log.ts';
import { NO_VAULT } from '../gateway/directory.ts';
import type { GatewayDisk } from './gateway-disk.ts';
import { type Calendar, Run } from './machine.ts';
import { traceLog } from './quiet-log.ts';
import type { World } from './world.ts';

const RESTART_MS = 500;

const NO_METRICS: Metrics = {
  pushed: () => undefined,
  called: () => undefined,
  heard: () => undefined,
  contentType: '',
  text: async () => '',
};

const NO_TRAFFIC_LOG: Pick<TrafficLog, 'box' | 'callback'> = { box: () => undefined, callback: () => undefined };

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
    const directory = createDirectory({
      registry: store.registry,
      enrolled: store.boxSecrets,
      config: this.#config,
      vault: NO_VAULT,
    });
    const changes = new Changes();
    await store.orders.failUnfinished(run.wallMs(), this.#config.confirm);
    const common = { clock: run, random: chance, log, directory, store, changes, trafficLog: NO_TRAFFIC_LOG };
    const hub = new Hub({ ...common, ...this.#config });
    const post = partner.postFor(run);
    const { callbackRetryWaitsMs: retryWaitsMs } = this.#config;
    const dispatcher = new CallbackDispatcher({
      ...common,
      metrics: NO_METRICS,
      retryWaitsMs,
      post,
      attempt: attemptCallback,
    });
    this.#dispatcher = dispatcher;
    const pay = createReceivePayment({ ...common, hub, dispatcher });
    const config = this.#config;
    const makers = new QrMakers({
      ...common,
      config,
      sources: { makerFor: () => undefined },
      askOf: () => () => Promise.reject(new Error('no source')),
    });
    this.#service = new Service({ ...common, config, hub, pay, makers, metrics: NO_METRICS });
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
