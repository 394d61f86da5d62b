import { expect, it } from 'vitest';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { cassoList, listServer, sepayList } from '../support/provider-lists.ts';
import { deliver, type Moved, moved, type Post, PROVIDERS, type Provider } from '../support/providers.ts';
import { type Seeded, seeded } from '../support/seeded.ts';
import { ACCOUNT, BOX1, type TestGateway, testGateway } from './harness.ts';

const MOVED_EACH = 20;
const MINUTE_MS = 60_000;
const provider = (name: string) => PROVIDERS[name] as Provider;
/** The sources of the gateway, each with an own name. */
const TELLERS = { sepay: provider('sepay signed'), casso: provider('casso V2'), vietqr: provider('vietqr') };
type Teller = keyof typeof TELLERS;

interface Plan {
  money: Moved;
  /** Whose webhooks tell of it; nobody's if they are lost. */
  tellers: Teller[];
  /** How often each tells it. */
  times: number;
  /** Whether the first answer is lost. */
  answerLost: boolean;
  isFresh: boolean;
}

/** Money of half a minute ago, or of 10 to 50 minutes ago; only the latter may be told by nobody, for catch-up. */
function planOf(chance: Seeded, id: number): Plan {
  const isFresh = chance.chance(0.5);
  const atMs = Date.now() - (isFresh ? 30_000 : (10 + chance.below(40)) * MINUTE_MS);
  const each: Teller[] = ['sepay', 'casso', 'vietqr'];
  const told = each.filter(() => chance.chance(0.4));
  const tellers = told.length === 0 && isFresh ? (['sepay'] as Teller[]) : told;
  const money = moved({
    id,
    reference: `FT${id}`,
    amount: 1_000 + chance.below(3) * 1_000,
    text: `thanh toan ${id}`,
    bankAccount: ACCOUNT.bankAccount,
    atMs: atMs - (atMs % 1000),
  });
  return { money, tellers, times: 1 + chance.below(2), answerLost: chance.chance(0.3), isFresh };
}

function postTo({ origin }: TestGateway, name: Teller): Post {
  return async ({ path, headers, body }) => {
    const answer = await fetch(`${origin}/hooks/${name}${path}`, { method: 'POST', headers, body });
    return { status: answer.status, body: await answer.json() };
  };
}

async function tell(gateway: TestGateway, { money, times, answerLost }: Plan, name: Teller): Promise<void> {
  let isLost = answerLost;
  const post: Post = async (call) => {
    const answer = await postTo(gateway, name)(call);
    if (!isLost || call.path.endsWith('token_generate')) return answer;
    isLost = false;
    throw new Error('the answer is lost');
  };
  for (let time = 0; time < times; time += 1) {
    expect((await deliver(TELLERS[name], money, post, Date.now)).status).toBe(200);
  }
}

it.each([1, 2])(
  'SRC-27 CRE-2 CRE-5 loses no money and says none twice, whoever tells it, how often and when (seed %i)',
  async (seed) => {
    const chance = seeded(seed);
    const plans = Array.from({ length: MOVED_EACH }, (_, i) => planOf(chance, i + 1));
    const lists = { sepay: sepayList(7), casso: cassoList(7) };
    for (const list of Object.values(lists)) list.moved.push(...plans.map((it) => it.money));
    const [sepayUrl, cassoUrl] = await Promise.all(Object.values(lists).map(listServer));
    const sources = [
      { name: 'sepay', ...lists.sepay.options(sepayUrl ?? '') },
      { name: 'casso', ...lists.casso.options(cassoUrl ?? '') },
      { name: 'vietqr', ...TELLERS.vietqr.options },
    ];
    const dataDir = await temporaryFolder();
    // The lists are down: only webhooks tell.
    const isUp = { sepay: lists.sepay.answer, casso: lists.casso.answer };
    for (const list of Object.values(lists)) list.answer = () => ({ status: 503, headers: {}, body: '' });
    const before = await testGateway({ dataDir, config: { sources } });
    const box = await connectFakeBox({ gateway: before, identity: BOX1, transport: 'http' });
    const calls = plans.flatMap((plan) => plan.tellers.map((name) => ({ plan, name, at: chance.fraction() })));
    await Promise.all(calls.toSorted((a, b) => a.at - b.at).map(({ plan, name }) => tell(before, plan, name)));
    const told = plans.filter(({ tellers }) => tellers.length > 0);
    const said = () => new Map(box.of('payment').map((it) => [it.transactionId, it]));
    await eventually('the notices', () => said().size === told.length);
    await before.close();

    Object.assign(lists.sepay, { answer: isUp.sepay });
    Object.assign(lists.casso, { answer: isUp.casso });
    const after = await testGateway({ dataDir, config: { sources } });
    const again = await connectFakeBox({ gateway: after, identity: BOX1, transport: 'http' });
    const found = async () => (await after.mock('/sources')).map((it) => it.lastCatchUp);
    await eventually('both lists', async () => (await found()).filter((it) => it !== null).length === 2);
    const payments = await after.mock('/payments?limit=100');
    expect(payments.map((it) => `${it.amount} ${it.content}`).toSorted()).toEqual(
      plans.map(({ money }) => `${money.amount} ${money.text}`).toSorted(),
    );
    await eventually('the notices of catch-up', () => {
      for (const it of again.of('payment')) if (!said().has(it.transactionId)) box.received.push(it);
      return said().size === plans.length;
    });
    const spoken = [...said().values()].filter((it) => !it.late).map((it) => it.content);
    expect(spoken.toSorted()).toEqual(
      plans
        .filter((it) => it.isFresh)
        .map((it) => it.money.text)
        .toSorted(),
    );
  },
);
