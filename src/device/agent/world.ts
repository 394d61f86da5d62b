import type { Boot } from '../../lib/boot.ts';
import type { Random } from '../../lib/random.ts';
import type { Connection, GatewayAddress, TransportIo } from './contract.ts';
import type { LocalHttpOptions } from './pages/server.ts';
import type { PeripheralOptions } from './peripherals/parts.ts';
import type { ConfiguredDisplay, DisplayWorld, OnStop, ScreenDeps } from './screen/screen.ts';

/** Everything with which an agent starts, already validated. Durations are milliseconds. */
export interface AgentSetup {
  /** Without a secret the box enrols. */
  identity: { terminalCode: string; serialNumber: string; secret?: string };
  /** The gateway at which a box without a secret enrols. */
  enrolment?: GatewayAddress | undefined;
  version: string;
  /** The first display confirms pushes. */
  displays: readonly [ConfiguredDisplay, ...ConfiguredDisplay[]];
  link: {
    transport: string;
    /** The gateway's address, for people. */
    gateway: string;
    open(io: TransportIo, signal: AbortSignal): Promise<Connection>;
  };
  http: LocalHttpOptions;
  parts: PeripheralOptions;
  dataDir: string;
  paidHoldMs: number;
  endedHoldMs: number;
  onStop: OnStop;
  /** True if screens say SANDBOX when the gateway asks for it (PROTOCOL.md, clause AGT-15). It is true by default. */
  sandboxMark?: boolean;
  /** True if faults may be injected; for test benches only. */
  faults?: boolean;
}

/** The time, chance, log and display resources of an agent. */
export interface AgentWorld extends DisplayWorld {
  random: Random;
  beforePainting?: ScreenDeps['beforePainting'];
  /** Without it the box trusts no time from before its start. */
  boot?: Boot;
}
