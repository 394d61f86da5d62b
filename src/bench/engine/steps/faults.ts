import { reasonOf } from '../../../lib/errors.ts';
import { faultKind } from '../../../protocol/faults.ts';
import { durationMs } from '../../scenarios/durations.ts';
import { type FaultArgs, faultOf, type Injection } from '../../scenarios/fault.ts';
import type { BoxClient } from '../clients/box.ts';
import type { GatewayClient } from '../clients/gateway.ts';
import { boxOf, type InjectedFault, type StepContext, StepFailure } from './context.ts';

const SEED_LIMIT = 1_000_000_000;

/** Runs `fault`: injects or ends faults, switches power, or sets the partner's answers. */
export async function fault(args: FaultArgs, context: StepContext): Promise<object | undefined> {
  const { target } = context;
  const { inject, end, box, gateway, partner, ...more } = faultOf(args);
  if (inject !== undefined) return injectFault({ ...more, inject }, context);
  if (end !== undefined) await endFaults(end, context);
  if (box !== undefined) {
    if (box !== 'on') {
      context.state.turnedOff ??= new Set();
      context.state.turnedOff.add(boxOf(context).terminalCode);
      await markEnded(boxOf(context), context);
    }
    await target.powerBox(context.box, box);
  }
  if (gateway !== undefined) {
    if (gateway !== 'on') await markEnded(target.gateway, context);
    await target.powerGateway(gateway);
  }
  if (partner !== undefined && target.partnerServer !== undefined) {
    target.partnerServer.answer(partner.answer, partner.times ?? 1);
    context.state.orderedAnswers ??= [];
    const after = target.partnerServer.received.length;
    context.state.orderedAnswers.push({ after, path: context.path, source: context.source });
  }
  return undefined;
}

/** Orders a fault at the box or gateway that makes it. Its seed comes from the seed of the run. */
async function injectFault(
  { inject, times, chance, content, ...more }: Injection,
  context: StepContext,
): Promise<object> {
  const { target, state, random, transcript } = context;
  const seconds = more.for === undefined ? undefined : (durationMs(more.for) ?? 0) / 1_000;
  const isOfBox = faultKind(inject).place === 'box';
  const box = isOfBox || context.isBoxNamed === true ? boxOf(context).terminalCode : undefined;
  const at = isOfBox ? boxOf(context) : target.gateway;
  const active = await at.orderFault({
    fault: inject,
    seed: Math.floor(random.fraction() * SEED_LIMIT),
    ...(box === undefined || isOfBox ? {} : { box }),
    ...(times === undefined ? {} : { times }),
    ...(chance === undefined ? {} : { chance }),
    ...(seconds === undefined ? {} : { seconds }),
    ...(content === undefined ? {} : { content: String(content) }),
  });
  state.injectedFaults ??= [];
  state.injectedFaults.push({ ...active, at, path: context.path, source: context.source });
  transcript.add('call', `fault ${inject}${isOfBox ? ` at ${box}` : ''}`, { detail: active });
  return active;
}

/** Marks faults that end because the power there is turned off, whether or not they have happened. */
async function markEnded(at: GatewayClient | BoxClient, { state }: StepContext): Promise<void> {
  const isThere = state.injectedFaults?.some((it) => it.at === at);
  if (isThere !== true) return;
  // A part that is off already has no active faults.
  const active = await at.faults().catch(() => undefined);
  const ids = new Set(active?.map(({ id }) => id));
  state.injectedFaults = (state.injectedFaults ?? []).map((it) =>
    it.at === at && ids.has(it.id) ? { ...it, endedByPowerOff: true } : it,
  );
}

/** Ends faults that the scenario has injected: all of them, by name, or by id. */
async function endFaults(which: string, context: StepContext): Promise<void> {
  const { state } = context;
  const before = state.injectedFaults ?? [];
  const meant = before.filter((it) => which === 'all' || it.fault === which || it.id === which);
  if (meant.length === 0 && which !== 'all') throw new StepFailure(`no fault ${which} was injected before`, context);
  await Promise.all(meant.map(({ at, id }) => at.endFault(id)));
  state.injectedFaults = before.filter((it) => !meant.includes(it));
}

/**
 * Throws StepFailure for an injected fault that never happened, because the scenario then ran without it. Exempt are
 * faults with a chance, faults that last for a time, and faults that the scenario ended. Ordered answers of the partner
 * must happen too.
 */
export async function expectHappened({ state, target }: StepContext): Promise<void> {
  const received = target.partnerServer?.received.length ?? 0;
  const unused = state.orderedAnswers?.find(({ after }) => after === received);
  if (unused !== undefined) {
    throw new StepFailure('fault: no callback came after this answer of the partner was ordered: pay an order', unused);
  }
  for (const injected of state.injectedFaults ?? []) {
    const { fault, chance, seconds } = injected;
    const lasts = faultKind(fault).timing !== 'late' && seconds !== undefined;
    if (chance !== undefined || lasts || (await timesHappened(injected)) !== 0) continue;
    const fix = 'name its order with content, or end it where it need not happen';
    throw new StepFailure(`fault: ${fault} was ordered, and has not happened: ${fix}`, injected);
  }
}

/** Ends faults that are still active at an external target. It records failures in the transcript. */
export async function endInjected({ target, state, transcript }: StepContext): Promise<void> {
  if (target.isExternal !== true) return;
  for (const [at, injected] of Map.groupBy(state.injectedFaults ?? [], (it) => it.at)) {
    const own = new Set(injected.map(({ id }) => id));
    try {
      const active = (await at.faults()) ?? [];
      for (const { id } of active) if (own.has(id)) await at.endFault(id);
    } catch (error) {
      const names = [...new Set(injected.map((it) => it.fault))].join(', ');
      transcript.add('problem', `these faults may still be active: ${names}: ${reasonOf(error)}`);
    }
  }
}

/** Returns why a fault has not happened as often as expected. A fault that is over has happened as often as ordered. */
export async function faultProblem(
  { name, ...expected }: { name: string; happened: number | string },
  { state }: StepContext,
): Promise<string | undefined> {
  const fault = state.injectedFaults?.findLast((it) => it.fault === name);
  if (fault === undefined) return `fault: no ${name} was injected, or it was ended`;
  const happened = await timesHappened(fault);
  if (happened === undefined) return `fault: ${name} is over, and how often it happened is not known`;
  return happened === Number(expected.happened)
    ? undefined
    : `fault: expected ${name} ${expected.happened} times, it happened ${happened} times`;
}

async function timesHappened({
  at,
  id,
  times,
  seconds,
  fault,
  endedByPowerOff: isCutOff,
}: InjectedFault): Promise<number | undefined> {
  if (isCutOff) return undefined;
  const active = (await at.faults())?.find((it) => it.id === id);
  if (active !== undefined) return active.happened;
  const { timing, seconds: usual } = faultKind(fault);
  const isForATime = timing !== 'late' && (seconds !== undefined || (times === undefined && usual !== undefined));
  return isForATime ? undefined : (times ?? 1);
}
