import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, it, onTestFinished, vi } from 'vitest';
import { sell } from '../../src/commands/actions/sell.ts';
import { ConfigError } from '../../src/lib/errors.ts';
import { eventually } from '../support/net.ts';
import { paybox } from '../support/processes.ts';

const SALE = {
  id: 'i',
  code: 'PB2345678',
  amount: 50_000,
  content: 'PB2345678',
  status: 'shown',
  isOpen: true,
  paid: 0,
};
const PART = { ...SALE, status: 'underpaid', paid: 20_000 };
const CANCELLED = { ...SALE, status: 'cancelled', isOpen: false };
const PAID = { ...SALE, status: 'paid', isOpen: false, paid: 50_000 };

/** A gateway that gives these answers, one after another; for undefined it hangs up. */
async function gatewayWith(...answers: readonly ({ status: number; body: object } | undefined)[]): Promise<string> {
  let next = 0;
  const server = createServer((request, response) => {
    const answer = answers[Math.min(next, answers.length - 1)];
    next += 1;
    if (answer === undefined) request.socket.destroy();
    else response.writeHead(answer.status, { 'content-type': 'application/json' }).end(JSON.stringify(answer.body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function heard() {
  const said: string[] = [];
  for (const stream of [process.stdout, process.stderr]) {
    const spy = vi.spyOn(stream, 'write').mockImplementation((text) => said.push(String(text)) > 0);
    onTestFinished(() => spy.mockRestore());
  }
  return said;
}

it('SEL-2 a sale outlives a gateway that is away for a while, and says so once', async () => {
  const gateway = await gatewayWith({ status: 201, body: SALE }, undefined, undefined, { status: 200, body: PAID });
  const said = heard();
  await sell({ gateway, amount: 50_000, wait: true });
  expect(said.filter((it) => it.includes('asked again'))).toHaveLength(1);
  expect(said.at(-1)).toContain('PB2345678 is paid');
});

it.each(['E35', 'E46'])(
  'SEL-1 %s of the gateway has exit code 1, as a refusal has in every command, and its reason',
  async (message) => {
    const reason = 'terminalCode: expected that of a box';
    const gateway = await gatewayWith({ status: 400, body: { status: 'FAILED', message, reason } });
    const sold = sell({ gateway, amount: 50_000, wait: true });
    await expect(sold).rejects.not.toBeInstanceOf(ConfigError);
    await expect(sold).rejects.toMatchObject({ message: expect.stringContaining(`${reason} (${message})`) });
  },
);

/** A gateway whose sale is `open` until it is cancelled, and `ended` then. */
async function tillCancelled(open: object, ended: object): Promise<string> {
  let isCancelled = false;
  const server = createServer(({ method, url = '' }, response) => {
    isCancelled ||= url.endsWith('/cancel');
    const isMade = method === 'POST' && !isCancelled;
    response.writeHead(isMade ? 201 : 200, { 'content-type': 'application/json' });
    response.end(JSON.stringify(isMade ? SALE : isCancelled ? ended : open));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

it.each([
  ['unpaid', SALE, CANCELLED, 130, /is cancelled$/m],
  ['partly paid', PART, { ...CANCELLED, paid: 20_000 }, 130, /is cancelled: 20\.000 ₫ of 50\.000 ₫ came$/m],
  ['paid at that moment', SALE, PAID, 0, /is paid: 50\.000 ₫$/m],
])('SEL-3 Ctrl-C of a sale that is %s says how it ended', async (_what, open, ended, code, said) => {
  const selling = paybox('sell', '--amount', '50000', '--gateway', await tillCancelled(open, ended));
  const first = open === PART ? 'is underpaid' : 'Ctrl-C cancels';
  await eventually('the sale', () => selling.output().includes(first));
  expect([await selling.stop('SIGINT'), selling.output()]).toEqual([code, expect.stringMatching(said)]);
});
