import { decodeQrTwice } from '../support/qr-decoders.ts';
import { NONE } from './expectation.ts';
import type { World } from './world.ts';

/** The rows of the lists that are looked at: those of a run and some before it. */
const ROWS = 30;
/** A box that still says that it shows a QR so long after its end shows it too long, however slow the machine. */
const EXPIRY_SLACK_MS = 3_000;

export interface GatewayPayment {
  transactionId: string;
  orderId: string;
  content: string;
  amount: number;
  /** `unconfirmed`: that a notice was sent to a box that confirms nothing. */
  boxes: { reportedAt: string | null; recorded: boolean | null; unconfirmed?: string | null }[];
  callback: { status: string } | null;
}

export interface GatewayOrder {
  orderId: string;
  status: string;
  pushes: { status: string }[];
}

interface BoxStatus {
  state: string;
  online: boolean;
  order: { orderId: string; qrCode: string; expiresAt: string } | null;
  lastPayment: { transactionId: string } | null;
  fault: { code: string } | null;
}

/** What the gateway and the box say of themselves at one moment; the lists are empty while the box is offline. */
export interface Observation {
  box: BoxStatus;
  /** When the box was asked, in milliseconds since 1970: what it says is of then or later. */
  askedMs: number;
  /** The box that said so has been switched on then or later, in milliseconds since 1970. */
  boxSinceMs: number;
  boxOnlineAtGateway: boolean;
  orders: GatewayOrder[];
  payments: GatewayPayment[];
}

/** `undefined` while one of the two does not answer. */
export async function observe({ gatewayUrl, boxUrl, programs }: World): Promise<Observation | undefined> {
  const boxSinceMs = programs.get('agent')?.startedAtMs ?? 0;
  const askedMs = Date.now();
  try {
    const [box, boxes] = await Promise.all([
      getJson<BoxStatus>(`${boxUrl}/status`),
      getJson<{ online: boolean }[]>(`${gatewayUrl}/_mock/boxes`),
    ]);
    const boxOnlineAtGateway = boxes[0]?.online === true;
    if (!box.online || !boxOnlineAtGateway)
      return { box, askedMs, boxSinceMs, boxOnlineAtGateway, orders: [], payments: [] };
    const [orders, payments] = await Promise.all([
      getJson<GatewayOrder[]>(`${gatewayUrl}/_mock/orders?limit=${ROWS}`),
      getJson<GatewayPayment[]>(`${gatewayUrl}/_mock/payments?limit=${ROWS}`),
    ]);
    return { box, askedMs, boxSinceMs, boxOnlineAtGateway, orders, payments };
  } catch {
    return undefined;
  }
}

/** A QR that is on the screen although it is over is wrong at any moment, and at once when the box began after that. */
export function overdueQr({ box: { order }, askedMs, boxSinceMs }: Observation): string | undefined {
  if (order === null) return undefined;
  const endMs = Date.parse(order.expiresAt);
  const lateMs = askedMs - endMs;
  if (boxSinceMs <= endMs && lateMs <= EXPIRY_SLACK_MS) return undefined;
  return `${order.orderId} is on the screen ${lateMs} ms after its end`;
}

/** What is not yet as it must be between box, gateway and screen. */
export async function disagreements(world: World, { box, boxOnlineAtGateway, orders }: Observation): Promise<string[]> {
  const wrong: string[] = [];
  if (!box.online) wrong.push('the box does not see its gateway');
  if (!boxOnlineAtGateway) wrong.push('the gateway does not see its box');
  if (box.fault !== null) wrong.push(`the box has the fault ${box.fault.code}`);
  if (box.state !== 'idle' && box.state !== 'showing') wrong.push(`the box is ${box.state}`);
  const onBox = box.order?.orderId ?? NONE;
  if (!world.screen.allows(onBox)) {
    wrong.push(`the box shows ${onBox === NONE ? 'no QR' : onBox}, expected ${world.screen}`);
  }
  for (const order of orders) {
    if (order.status === 'shown' && order.orderId !== onBox) wrong.push(`the gateway thinks ${order.orderId} is shown`);
  }
  const known = orders.find((it) => it.orderId === onBox);
  if (onBox !== NONE && known?.pushes.some(({ status }) => status === 'shown') !== true) {
    wrong.push(`the gateway thinks ${onBox} is ${known?.status ?? 'unknown'}, the box shows it`);
  }
  if (wrong.length === 0 && (await qrOnScreen(world.boxUrl)) !== (box.order?.qrCode ?? NONE)) {
    wrong.push('the picture on the screen has another QR than the box says');
  }
  return wrong;
}

/** The QR that a phone reads off the box's screen, or NONE. */
export async function qrOnScreen(boxUrl: string): Promise<string> {
  const picture = new Uint8Array(await (await fetch(`${boxUrl}/screen.png`)).arrayBuffer());
  try {
    const [first, second] = decodeQrTwice(picture);
    return first === second ? first : `two readings: ${first}, ${second}`;
  } catch {
    // The decoder found no code.
    return NONE;
  }
}

export async function getJson<T>(url: string): Promise<T> {
  const response = await fetch(url, { signal: AbortSignal.timeout(5_000) });
  return (await response.json()) as T;
}
