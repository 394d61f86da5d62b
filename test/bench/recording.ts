import { fileOf } from '../../src/bench/record/file.ts';
import { Recorder } from '../../src/bench/record/recorder.ts';
import type { Recording } from '../../src/bench/record/recording.ts';
import { type Result, runScenario } from '../../src/bench/run.ts';
import { parseScenario } from '../../src/bench/scenario.ts';
import type { TargetKind } from '../../src/bench/target.ts';
import { systemClock } from '../../src/lib/clock.ts';
import { decodeVietQr } from '../../src/protocol/vietqr.ts';
import { emulated, SEED } from './stand.ts';

const LISTEN_MS = 50;

/** Runs a scenario, and records what the gateway heard and the boxes showed. `watched`: whether their screens are seen. */
export async function recordedRun(
  source: string,
  { watched = true, kind = emulated() }: { watched?: boolean; kind?: TargetKind } = {},
) {
  let recording: Recording | undefined;
  const heardBy = async (need: Parameters<TargetKind['open']>[0]) => {
    const target = await kind.open(need);
    const { pace, probe, gateway } = target;
    const boxes = watched ? target.boxes : [];
    const recorder = new Recorder({ origin: gateway.access.origin, boxes, probe, pace });
    const ending = new AbortController();
    const watching = recorder.watch(ending.signal);
    const listening = (async () => {
      while (!ending.signal.aborted) {
        // A scenario may have the gateway off.
        await recorder.listen().catch(() => undefined);
        await systemClock.sleep(LISTEN_MS, ending.signal);
      }
    })();
    const close = async () => {
      await recorder.listen().catch(() => undefined);
      ending.abort();
      await Promise.all([watching, listening]);
      recording = recorder.recording(Date.UTC(2026, 0, 2, 3, 4, 5));
      await target.close();
    };
    // The first sight of every box.
    await pace.during(() => systemClock.sleep(LISTEN_MS));
    return { ...target, close };
  };
  const options = { seed: SEED, updateGoldens: false, signal: new AbortController().signal, onStep: () => undefined };
  const result = await runScenario(parseScenario(source, 'recorded.yaml'), { ...kind, open: heardBy }, options);
  if (recording === undefined) throw new Error('nothing was recorded');
  return { result, recording, file: fileOf(recording) ?? '' };
}

/** How a run came out, in short. */
export const verdict = ({ outcome, reason, where }: Result) => ({ outcome, reason, where });

/** What happens at one box does so in one order; what at two boxes, in any. */
function byBox<T extends { box: string }>(list: readonly T[]): T[] {
  return list.toSorted((a, b) => a.box.localeCompare(b.box));
}

/** What boxes showed, without ids that differ from run to run: kinds of screens, and what their QRs ask for. */
export function screensOf({ sights }: Recording): string[] {
  const screens = byBox(sights).map(({ box, screen, qr, text }) => {
    const said = qr === undefined ? undefined : decodeVietQr(qr);
    const asks = said?.ok ? `${said.value.account} ${said.value.amount} ${said.value.purpose}` : (qr ?? 'no QR');
    return `${box} ${screen} ${asks} ${/[\d.]+ ₫/.exec(text)?.[0] ?? ''}`;
  });
  return screens.filter((it, index) => !/ (off|starting|connecting) /.test(it) && it !== screens[index - 1]);
}

/** What boxes reported, each report once, with its order or payment as a number. */
export function reportsOf({ heard }: Recording): string[] {
  const numbers = new Map<string, number>();
  const numberOf = (id: string) => {
    if (!numbers.has(id)) numbers.set(id, numbers.size + 1);
    return numbers.get(id);
  };
  const reports = byBox(heard.filter((it) => it.kind === 'message')).flatMap((it) => {
    if (it.to !== 'gateway' || it.body.type === 'hello') return [];
    const { type, pushId, transactionId, how, amount } = it.body as Record<string, string | number | undefined> & {
      type: string;
    };
    const id = String(pushId ?? transactionId);
    return [`${it.box} ${type} ${numberOf(id)} ${how ?? ''} ${amount ?? ''}`.trim()];
  });
  return [...new Set(reports)];
}

/** What the partner was told, without ids. */
export function callbacksOf({ heard }: Recording): string[] {
  return heard.flatMap((it) => {
    if (it.kind !== 'callback') return [];
    const { amount, content, orderId, terminalCode } = it.body as Record<string, unknown>;
    return [`${it.result} ${it.status} ${amount} ${content} ${orderId} ${terminalCode}`];
  });
}
