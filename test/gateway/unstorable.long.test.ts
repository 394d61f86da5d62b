import { describe, expect, it } from 'vitest';
import { bytesOf, login, tryAll } from '../security/mqtt-attacks.ts';
import { bodyWith, moved, PROVIDERS, type Provider } from '../support/providers.ts';
import { ENGINES } from '../support/stores.ts';
import { ACCOUNT, BOX1, partnerServer, processed, type TestGateway, type TestOptions, testGateway } from './harness.ts';
import { answersTo, basic, routesDuring, strangeRequests } from './strange-requests.ts';

const isMissing = ENGINES.some((it) => it.missing);
const names = ENGINES.map((it) => it.name).join(' as over ');

/** Makes a gateway over each store. */
type OverBoth = <T>(run: (open: (options?: TestOptions) => Promise<TestGateway>) => Promise<T>) => Promise<T[]>;

function overBoth(): OverBoth {
  const places = ENGINES.map((it) => it.places());
  return async (run) => {
    const results = [];
    for (const place of places) {
      const { dataDir, databaseUrl } = await place();
      const open = ({ config, ...options }: TestOptions = {}) =>
        testGateway({ ...options, dataDir, config: { ...config, ...(databaseUrl && { databaseUrl }) } });
      results.push(await run(open));
    }
    return results;
  };
}

const sourceOf = (provider: Provider) => ({ name: 'till', ...provider.options });
const errors = ({ log }: TestGateway) => log.filter((it) => it.level === 'error');

describe.skipIf(isMissing)(`what a text column cannot hold, over ${names}`, () => {
  const both = overBoth();

  it('ERR-8 THR-42 has the same answer, which is no 500, in every path, query, login and body of every route', async () => {
    const [first = [], second = []] = await both(async (open) => {
      const sources = [sourceOf(PROVIDERS.vietqr as Provider)];
      const { started: gateway, routes } = await routesDuring(() => open({ config: { registry: 'store', sources } }));
      const bearer = `Bearer ${await gateway.token()}`;
      const box = basic(`${BOX1.terminalCode}:wrong`);
      // A download of all is possible from one of the stores only.
      const asked = strangeRequests(
        routes.filter(({ url }) => url !== '/_mock/backup'),
        // Programs of this machine are admins without a token; a wrong one would be refused before anything is read.
        (url) => (url.startsWith('/box/') ? box : /^\/(?:_mock|admin)\//.test(url) ? undefined : bearer),
      );
      const answers = await answersTo(gateway.origin, asked);
      expect(asked.length).toBeGreaterThan(4_000);
      const failed = answers.flatMap(({ status }, i) => (status >= 500 && status !== 503 ? [asked[i]] : []));
      expect(failed).toEqual([]);
      // Nothing of an admin is refused before it is read.
      const ofAdmins = answers.filter((_answer, i) => /^\/(?:_mock|admin)\//.test(asked[i]?.path ?? ''));
      expect(ofAdmins.filter(({ status }) => status === 401)).toEqual([]);
      expect(errors(gateway)).toEqual([]);
      return answers.map(({ status, why }, i) => [
        asked[i]?.method,
        asked[i]?.path,
        String(asked[i]?.body),
        status,
        why,
      ]);
    });
    expect(first).toEqual(second);
  });

  it.each(Object.entries(PROVIDERS))(
    'ERR-8 SRC-26 is paid where %s tells of money with it',
    async (_name, provider) => {
      const nowMs = Date.now();
      const told = await both(async (open) => {
        const gateway = await open({ config: { sources: [sourceOf(provider)] } });
        const tell = async ({ path, headers, body }: ReturnType<Provider['call']>) => {
          const answer = await fetch(`${gateway.origin}/hooks/till${path}`, { method: 'POST', headers, body });
          return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
        };
        const given = provider.askToken && (await tell(provider.askToken(provider.key))).body.access_token;
        const proof = { nowMs, ...(given !== undefined && { token: String(given) }) };
        const paid: unknown[] = [];
        const places = Object.entries(provider.at).filter(([name]) => !['amount', 'account'].includes(name));
        for (const [i, [name, place]] of places.entries()) {
          for (const [k, strange] of ['\0', 'a\0b', '\ud800', '\ud801'].entries()) {
            const id = 1 + i * 10 + k;
            const atMs = nowMs - (nowMs % 1000) - id * 1000;
            const money = moved({ id, reference: `FT${id}`, orderCode: id, atMs, bankAccount: ACCOUNT.bankAccount });
            const call = provider.call(bodyWith(provider.body(money), place, strange), proof);
            const statuses = [await tell(call), await tell(call)].map((it) => it.status);
            expect([name, strange, statuses]).toEqual([name, strange, [200, 200]]);
            paid.push(id);
          }
        }
        const credits =
          await gateway.mock<{ sourceId: string; text: string; transactionId: string | null }[]>('/credits');
        expect(credits).toHaveLength(paid.length);
        expect(credits.every((it) => it.transactionId !== null)).toBe(true);
        expect(errors(gateway)).toEqual([]);
        return credits.map(({ sourceId, text }) => ({ sourceId, text }));
      });
      expect(told[0]).toEqual(told[1]);
    },
  );

  it('ERR-8 SYN-3 does not make a partner get its callback again when its reply has it', async () => {
    const replies = [
      '{"error":true,"errorReason":"a\\u0000b\\ud800","toastMessage":null,"object":null}',
      'raw \0 text',
    ];
    await both(async (open) => {
      const partner = await partnerServer(
        ...replies.map((it) => (_call: unknown, response: Parameters<typeof processed>[1]) => void response.end(it)),
        processed,
      );
      const gateway = await open({ callback: { url: partner.url } });
      for (const [i, content] of ['DH1', 'DH2', 'DH3'].entries()) {
        expect((await gateway.testCallback({ content, amount: 1000 + i })).status).toBe(200);
        await expect
          .poll(async () => (await gateway.mock<{ status: string }[]>('/callbacks')).map(({ status }) => status))
          .toEqual(Array.from({ length: i + 1 }, () => 'delivered'));
      }
      expect(partner.calls).toHaveLength(3);
      expect(errors(gateway)).toEqual([]);
    });
  });

  it('ERR-8 TOP-2 logs nobody in at the broker, and is no error there', async () => {
    await both(async (open) => {
      const shared = { username: 'shared', password: 'password-of-boxes-of-other-makers' };
      const vietqrBoxes = { checkSumSalt: 'salt', boxIdSalt: 'salt', login: shared };
      const gateway = await open({ config: { vietqrBoxes } });
      const port = Number(new URL(String(gateway.mqttUrl)).port);
      const strange = ['a\0b', '\0', `${BOX1.terminalCode}\0`, '\ufffd', 'x'.repeat(3_000)];
      const attacks = strange.flatMap((it) => [
        bytesOf(login({ port, username: it, password: 'x' })),
        bytesOf(login({ port, username: BOX1.terminalCode, password: it }, { clientId: it.slice(0, 20) })),
      ]);
      const tried = await tryAll({ port }, attacks);
      expect(tried.map(({ loggedIn }) => loggedIn)).toEqual(attacks.map(() => false));
      const refused = gateway.logged('mqtt-login-refused').map(({ reason }) => reason);
      expect(new Set(refused)).toEqual(new Set(['unknown box or wrong secret']));
      const payload = Buffer.from('{"bankAccount":"a\\u0000b"}');
      const calls = ['vietqr/request/X', 'vietqr/request-status/X', 'vietqr/test/transaction-callback'].map((topic) =>
        bytesOf(login({ port, ...shared }), { cmd: 'publish', topic, payload, qos: 1, messageId: 1 }),
      );
      await tryAll({ port }, calls);
      await expect
        .poll(() => gateway.logged('host-call-refused').map(({ code }) => code))
        .toEqual(['E36', 'E36', 'E36']);
      expect(errors(gateway)).toEqual([]);
    });
  });
});
