import { onTestFinished } from 'vitest';
import { startProxy } from '../support/proxy.ts';
import { BOX1, BOX2 } from './harness.ts';

export const own = BOX1.terminalCode;
export const others = BOX2.terminalCode;

export async function cableTo(url: string) {
  const proxy = await startProxy({ port: Number(new URL(url).port) });
  onTestFinished(() => proxy.close());
  return { proxy, mqttUrl: `mqtt://127.0.0.1:${proxy.port}` };
}
