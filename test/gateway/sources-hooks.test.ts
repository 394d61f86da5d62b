import { describe, expect, it } from 'vitest';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import { deliver, type HookCall, moved, type Post, PROVIDERS, type Provider } from '../support/providers.ts';
import { ACCOUNT, BOX1, OTHER_ACCOUNT, type TestGateway, testGateway } from './harness.ts';

const HOOK = '/hooks/till';

async function withSource(options: Record<string, unknown>): Promise<{
  gateway: TestGateway;
  post: (call: HookCall & { base?: string }) => ReturnType<Post>;
}> {
  const gateway = await testGateway({ config: { sources: [{ name: 'till', ...options }] } });
  const post = async ({ path, headers, body, base = HOOK }: HookCall & { base?: string }) => {
    const answer = await fetch(`${gateway.origin}${base}${path}`, { method: 'POST', headers, body });
    return { status: answer.status, body: await answer.json() };
  };
  return { gateway, post };
}

/** Money of half a minute ago. */
const fresh = (change: Parameters<typeof moved>[0] = {}) => {
  const atMs = Date.now() - 30_000;
  return moved({ atMs: atMs - (atMs % 1000), bankAccount: ACCOUNT.bankAccount, text: 'MBVCB.1 DH001 ck', ...change });
};

describe.each(Object.entries(PROVIDERS))('the hook of %s', (_name, provider) => {
  const isVietqr = provider.options.kind === 'vietqr';

  it('SRC-26 makes one payment of what is told until it is answered, and told again by hand', async () => {
    const { gateway, post } = await withSource(provider.options);
    const box = await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' });
    let tries = 0;
    // The first try does not come through, then the answer is lost.
    const badly: Post = async (call) => {
      if (provider.askToken !== undefined && call.path === '/api/token_generate') return post(call);
      tries += 1;
      if (tries === 1) throw new Error('no connection');
      const answer = await post(call);
      if (tries === 2) throw new Error('the answer is lost');
      return answer;
    };
    const money = fresh();
    const delivered = await deliver(provider, money, badly, Date.now);
    expect(delivered).toEqual({ waitsMs: provider.retryWaitsMs.slice(0, 2), status: 200 });
    for (let i = 0; i < 2; i += 1) expect((await deliver(provider, money, post, Date.now)).status).toBe(200);
    const payment = await box.next('payment');
    expect(payment).toMatchObject({ amount: 50_000, content: 'MBVCB.1 DH001 ck', late: false });
    await deliver(provider, fresh({ id: 2, reference: 'FT2', amount: 60_000 }), post, Date.now);
    await eventually('the second payment', () => box.of('payment').length === 2);
    expect(await gateway.mock('/payments')).toMatchObject([{ amount: 60_000 }, { amount: 50_000 }]);
  });

  it('SRC-26 takes any content type, answers debits and test calls like success, and repeated slashes as one', async () => {
    const { gateway, post } = await withSource(provider.options);
    const plainly: Post = (call) =>
      post({
        ...call,
        path: call.path.replaceAll('/', '//'),
        base: '//hooks//till',
        headers: { ...call.headers, 'content-type': 'text/plain' },
      });
    expect((await deliver(provider, fresh({ out: true }), plainly, Date.now)).status).toBe(200);
    if (!isVietqr) expect((await deliver(provider, fresh({ id: 0 }), plainly, Date.now)).status).toBe(200);
    expect(await gateway.mock('/payments')).toEqual([]);
    expect(gateway.logged('credit-ignored')).toHaveLength(isVietqr ? 1 : 2);
    expect((await deliver(provider, fresh(), plainly, Date.now)).status).toBe(200);
    expect(await gateway.mock('/payments')).toHaveLength(1);
  });
});

it.each([{}, { payload: 'camel' }, { payload: 'strings', decimals: true }])(
  'SRC-24 SRC-25 SYN-10 a gateway as the public service pays at a shop, which is its partner: %o',
  async (form) => {
    const { username, password }: Record<string, unknown> = { ...PROVIDERS.vietqr?.options };
    const { gateway: shop } = await withSource({ kind: 'vietqr', username, password });
    const box = await connectFakeBox({ gateway: shop, identity: BOX1, transport: 'http' });
    const hook = `${shop.origin}${HOOK}`;
    const auth = { kind: 'token', url: `${hook}//api/token_generate`, username, password };
    const service = await testGateway({ callback: { url: `${hook}//bank/api/transaction-sync`, auth, ...form } });
    expect((await service.testCallback({ content: 'DH001 tai quay 2' })).body.status).toBe('SUCCESS');
    expect(await box.next('payment')).toMatchObject({ amount: 50_000, content: 'DH001 tai quay 2', late: false });
    const [payment] = await service.mock('/payments');
    const [credit] = await shop.mock('/credits');
    expect(credit).toMatchObject({
      source: 'till',
      reference: payment?.referenceNumber ?? expect.stringMatching(/^demo-/),
    });
    await eventually('the callback', async () => (await service.mock('/callbacks'))[0]?.status === 'delivered');
    expect((await service.mock('/callbacks'))[0]).toMatchObject({ warning: null, attemptCount: 1 });
  },
);

it('SRC-5 LIM-7 a flood of nested bodies without proof is refused, limited, and no fault of the gateway', async () => {
  const { gateway, post } = await withSource({ kind: 'payos', checksumKey: 'sample-payos-key-of-a-test' });
  const body = `{"signature":"x","data":{"a":${'['.repeat(30_000)}${']'.repeat(30_000)}}}`;
  const answers = await Promise.all(Array.from({ length: 40 }, () => post({ path: '', headers: {}, body })));
  expect(answers.map(({ status }) => status).toSorted()).toEqual([...Array(30).fill(400), ...Array(10).fill(429)]);
  expect(gateway.log.filter(({ level }) => level === 'error')).toEqual([]);
});

it('CRE-2 SRC-25 one number at two accounts is two credits, each known again', async () => {
  const provider = PROVIDERS.vietqr as Provider;
  const { gateway, post } = await withSource(provider.options);
  for (const account of [ACCOUNT, OTHER_ACCOUNT, OTHER_ACCOUNT, ACCOUNT]) {
    const told = fresh({ bankAccount: account.bankAccount });
    expect((await deliver(provider, told, post, Date.now)).status).toBe(200);
  }
  const accounts = (await gateway.mock('/payments')).map(({ bankAccount }) => bankAccount);
  expect(accounts).toEqual([OTHER_ACCOUNT.bankAccount, ACCOUNT.bankAccount]);
});
