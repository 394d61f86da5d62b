import { z } from 'zod';
import {
  type ActiveFaultView,
  activeFaultView,
  FAULT_NAMES,
  type FaultOrder,
  faultOrder,
} from '../../protocol/faults.ts';
import { type OwnRoute, ownRoute } from '../access/own-route.ts';
import { accept, type Result, refuse } from '../common/result.ts';
import type { Stored } from '../common/stored.ts';

/** A fault that an admin can order. */
const offeredFault = z.strictObject({
  name: z.enum(FAULT_NAMES),
  place: z.string(),
  about: z.string(),
  seconds: z.number().nullable(),
  magic: z.string().nullable().describe('the content of a payment or push that orders it'),
  isPerBox: z.boolean().describe('whether it can be ordered for one box'),
});
export type OfferedFault = z.output<typeof offeredFault>;

/** Lists, orders and ends faults, for `/_mock/faults`. */
export interface FaultOrders {
  /** Empty outside a sandbox. */
  offered(): OfferedFault[];
  active(): ActiveFaultView[];
  /**
   * Orders a fault at all gateways of the database, where it happens as often as ordered in all of them together.
   * Rejects if the news does not reach the database.
   */
  order(order: FaultOrder): Promise<Result<ActiveFaultView>>;
  /** Ends a fault and its delays, at all gateways. Returns whether it was active. */
  end(id: string): Promise<boolean>;
  endAll(): Promise<void>;
}

/** Serves the routes outside a sandbox. */
const NO_FAULTS: FaultOrders = {
  offered: () => [],
  active: () => [],
  order: async () => refuse('E75', 'not a sandbox: no faults can be ordered'),
  end: async () => false,
  endAll: async () => undefined,
};

/** Returns the routes of faults, below `/_mock` (PROTOCOL.md, clauses FLT-1 and FLT-3). */
export function faultRoutes({ directory }: Stored, faults: FaultOrders = NO_FAULTS): OwnRoute[] {
  const common = { access: 'administer', isReasoned: true } as const;
  return [
    ownRoute({
      method: 'GET',
      path: '/faults',
      access: 'look',
      summary: 'The faults that can be ordered, and those that are active',
      answer: z.strictObject({ faults: z.array(offeredFault), standing: z.array(activeFaultView) }),
      run: async () => accept({ faults: faults.offered(), standing: faults.active() }),
    }),
    ownRoute({
      ...common,
      method: 'POST',
      path: '/faults',
      summary: 'Order a fault',
      body: faultOrder,
      answer: activeFaultView,
      status: 201,
      refusals: ['E35', 'E75'],
      run: async ({ body }) => {
        const { box } = body;
        if (box !== undefined && (await directory.box(box)) === undefined) {
          return refuse('E35', `box: ${box} is not in the system`);
        }
        return faults.order(body);
      },
    }),
    ownRoute({
      ...common,
      method: 'DELETE',
      path: '/faults',
      summary: 'End every fault',
      status: 204,
      refusals: ['E75'],
      run: async () => accept(await faults.endAll()),
    }),
    ownRoute({
      ...common,
      method: 'DELETE',
      path: '/faults/:id',
      summary: 'End a fault',
      status: 204,
      refusals: ['E75', 'E96'],
      run: async ({ name }) =>
        (await faults.end(name))
          ? accept(undefined)
          : refuse('E96', 'no such fault is active: GET /_mock/faults lists the active ones'),
    }),
  ];
}
