import { isGuest } from './quiescence.ts';
import type { World } from './world.ts';

interface PaymentRow {
  id: string;
  amount: number;
  content: string;
  order_id: string;
  trans_type: string;
}

/** Pushes that end within this are not compared: one side may see the end before the other. */
const EDGE_MS = 2_000;

/** Checks every payment and every screen of a world that has settled; how many payments it checked. */
export function checkLedger(world: World): number {
  const { disk, shop, oracle } = world;
  const payments = disk.rows<PaymentRow>('SELECT id, amount, content, order_id, trans_type FROM payments');
  const known = new Map(payments.map((it) => [it.id, it]));
  const wrong = (what: string) => oracle.violations.push(what);
  for (const [id, { amount, content }] of shop.accepted) {
    const row = known.get(id);
    if (row?.amount !== amount || row.content !== content) wrong(`payment ${id} was accepted and is not in the store`);
  }
  const asked = new Map(shop.asked);
  for (const row of payments) {
    const left = (asked.get(`${row.content} ${row.amount}`) ?? 0) - 1;
    asked.set(`${row.content} ${row.amount}`, left);
    if (left < 0) wrong(`payment ${row.id} was made more often than it was asked for`);
    checkPayment(world, row, wrong);
  }
  for (const [what, ids] of [
    ['announced', oracle.heard],
    ['shown', oracle.seenPaid],
    ['called back', oracle.callbacks],
  ] as const) {
    for (const id of ids.keys()) if (!known.has(id)) wrong(`payment ${id} was ${what} and never made`);
  }
  checkScreens(world, wrong);
  world.assert();
  return payments.length;
}

function checkPayment({ disk, oracle, boxes }: World, row: PaymentRow, wrong: (what: string) => void): void {
  const [body] = oracle.callbacks.get(row.id) ?? [];
  if (body === undefined) wrong(`payment ${row.id} never reached the partner`);
  else {
    const told = JSON.parse(body) as Record<string, unknown>;
    const same = told.amount === row.amount && told.content === row.content && told.orderId === row.order_id;
    if (!same) wrong(`payment ${row.id} reached the partner as ${body}`);
  }
  const notices = disk.rows<{ terminal_code: string; late: number }>(
    'SELECT terminal_code, late FROM notices WHERE payment_id = ?',
    row.id,
  );
  if (notices.length === 0) wrong(`payment ${row.id} is for no box`);
  const devicesOf = (terminalCode: string) =>
    boxes.filter((box) => box.identity.terminalCode === terminalCode).map((box) => box.name);
  const meant = new Set(notices.flatMap((notice) => devicesOf(notice.terminal_code)));
  const heardBy = [...(oracle.heard.get(row.id)?.keys() ?? [])];
  const seenBy = [...(oracle.seenPaid.get(row.id) ?? [])];
  for (const name of [...heardBy, ...seenBy]) if (!meant.has(name)) wrong(`payment ${row.id} was told by ${name}`);
  if (oracle.unrecorded.has(row.id)) return;
  for (const { terminal_code, late } of notices) {
    // No news: the box only lists it.
    if (late === 1) continue;
    const seen = devicesOf(terminal_code).some((name) => seenBy.includes(name));
    if (!seen) wrong(`payment ${row.id} was never on the screen of ${terminal_code}`);
  }
}

/** Box and gateway agree about the order on each screen. */
function checkScreens({ disk, oracle, boxes, clock, gateway }: World, wrong: (what: string) => void): void {
  const nowMs = clock.monotonicMs();
  for (const box of boxes.filter((it) => !isGuest(it))) {
    const scene = oracle.sceneOn(box);
    const onScreen = scene?.kind === 'payment' ? scene.pushId : undefined;
    const { terminalCode } = box.identity;
    const rows = disk.rows<{ id: string; status: string; is_paid: number; again: number }>(
      `SELECT pushes.id, pushes.status, orders.status = 'paid' AS is_paid, pushes.created_at_ms > paid_at_ms AS again
       FROM pushes JOIN orders ON orders.id = order_ref
       WHERE pushes.terminal_code = ? AND (pushes.status = 'shown' OR pushes.id = ?)`,
      terminalCode,
      onScreen ?? '',
    );
    const held = box.state?.stage.kind === 'paid' ? box.state.stage.resume?.order.pushId : onScreen;
    for (const { id, status, is_paid, again } of rows) {
      const push = oracle.pushes.get(id);
      if (push === undefined || push.expiresAtMs < nowMs + EDGE_MS || !oracle.isOf(box, push)) continue;
      if (id === onScreen && status !== 'shown') wrong(`${box.name} shows ${id}, which is ${status} at the gateway`);
      if (is_paid === 0 && status === 'shown' && id !== held) {
        wrong(`${box.name} does not show ${id}, which the gateway believes`);
      }
      // Who pushes a paid order once more wants it on the screen; what was there before is over.
      const isOver = is_paid === 1 && again === 0 && gateway.calendar.offsetMs === 0;
      if (id === onScreen && isOver) wrong(`${box.name} shows ${id}, which is paid`);
    }
  }
}
