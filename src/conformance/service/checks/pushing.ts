import { systemClock } from '../../../lib/clock.ts';
import { Mismatch, Unmet } from '../../check.ts';
import { type Called, codeOf, told } from '../client.ts';
import { recordOf } from '../json.ts';
import { ownQr, pushBody, qrOf } from '../requests.ts';
import type { OnShow, PlayedBox } from '../simulated-box.ts';
import type { Order, ServiceRun } from '../subject.ts';
import { send } from './push.ts';

/** An answer that is not there after this, in everybody's time, waits for something. */
const HELD_MS = 300;
/** For what must not come. */
export const QUIET_MS = 2_000;

export const hold: OnShow = async () => undefined;

/** A push that is on its way to the played box. */
export async function started(run: ServiceRun, box: PlayedBox, order: Order = run.subject.newOrder()) {
  const before = box.of('show').length;
  const qrCode = await qrOf(run, order);
  const answer = settling(send(run, pushBody(run, order, qrCode)));
  const show = await box.next('show', before + 1);
  return { order, qrCode, answer, show };
}

/** A request under way, of which can be told whether it is answered. */
export interface Settling {
  called: Promise<Called>;
  isAnswered(): boolean;
}

export function settling(called: Promise<Called>): Settling {
  let isAnswered = false;
  const end = () => {
    isAnswered = true;
  };
  // Whoever awaits `called` has the error.
  called.then(end, end);
  return { called, isAnswered: () => isAnswered };
}

export async function expectHeld(run: ServiceRun, { called, isAnswered }: Settling, what: string): Promise<void> {
  await run.subject.pace.during(() => systemClock.sleep(HELD_MS));
  if (isAnswered()) throw new Mismatch(`${what} the push is answered ${told(await called)}`);
}

/** A push that the box has shown. */
export async function shown(run: ServiceRun, order: Order, change: object = {}): Promise<void> {
  const qrCode = ownQr(run.subject, order);
  const called = await send(run, pushBody(run, order, qrCode, { ...change }));
  if (codeOf(called) !== undefined) throw new Unmet(`needs a push that is shown, this one is answered ${told(called)}`);
}

export function expectNoMessage({ json, text }: Called): void {
  if (recordOf(json).message !== '') throw new Mismatch(`expected an empty message, is ${text}`);
}

/** A push to the box that is on. Throws Unmet when it is off. */
export async function pushedToBoxOn(run: ServiceRun): Promise<{ called: Called; qrCode: string }> {
  const order = run.subject.newOrder();
  const qrCode = await qrOf(run, order);
  const { terminalCode = '', serialNumber = '' } = run.subject.options.boxOn ?? {};
  const called = await send(run, pushBody(run, order, qrCode, { terminalCode, serialNumber }));
  if (codeOf(called) === 'BOX_OFFLINE') throw new Unmet('needs a box that is on: turn it on');
  return { called, qrCode };
}
