import { describe, expect, it } from 'vitest';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import { PROGRAMS, without } from '../support/programs.ts';
import { admin } from './admin.ts';
import { BOX1, BOX4, type TestGateway, testGateway } from './harness.ts';
import { openPage } from './page.ts';

const { missing, note } = without(PROGRAMS.chromium);
const ROOT = 'A-long-admin-token-of-a-test';
const asRoot = { authorization: `Bearer ${ROOT}` };

async function shop(): Promise<TestGateway> {
  const gateway = await testGateway({ config: { adminToken: ROOT } });
  for (const identity of [BOX1, BOX4]) {
    await connectFakeBox({ gateway, identity, transport: 'http', onShow: (it, show) => void it.shown(show) });
  }
  return gateway;
}

async function tokenOf(gateway: TestGateway, body: object): Promise<string> {
  return String((await admin(gateway, 'POST', 'tokens', body, asRoot)).body.token);
}

/** A page with what people do in it. */
async function openAs(gateway: TestGateway, path: string, token: string) {
  const page = await openPage(`${gateway.origin}${path}`);
  const logIn = async (text: string) => {
    await page.becomes("!document.getElementById('gate').hidden");
    await page.evaluate(`
      document.querySelector('[name=token]').value = '${text}';
      document.getElementById('login').requestSubmit();
    `);
    await page.becomes("document.getElementById('live').textContent === 'connected'");
  };
  await logIn(token);
  const shown = (selector: string) =>
    page.evaluate(
      `[...document.querySelectorAll('${selector}')].filter((it) => it.checkVisibility()).map((it) => it.innerText)`,
    );
  return { ...page, logIn, shown };
}

describe.skipIf(missing)(`in a browser${note}`, () => {
  it('ROL-1 ROL-4 the console is a till for a cashier: he sells and cancels at his boxes, until he is out', async () => {
    const gateway = await shop();
    const token = await tokenOf(gateway, { name: 'till-1', role: 'cashier', boxes: [BOX1.terminalCode] });
    const sale = { amount: 70_000, terminalCode: BOX4.terminalCode };
    expect((await admin(gateway, 'POST', 'sales', sale, asRoot)).status).toBe(201);
    const page = await openAs(gateway, '/', token);
    await page.shows('till-1 · cashier');
    expect(await page.shown('main > section h2')).toEqual([expect.stringContaining('Sales')]);
    expect(await page.shown('header a')).toEqual(['API']);
    expect(await page.evaluate("[...document.getElementById('sell-box').options].map((it) => it.value)")).toEqual([
      BOX1.terminalCode,
    ]);
    await page.evaluate("document.querySelector('[name=amount]').value = '55.000'");
    await page.click('Show QR');
    await page.shows('VVB000001 shows 55.000 ₫');
    await page.shows('by till-1');
    expect(await page.evaluate("document.getElementById('sales').innerText")).not.toContain(BOX4.terminalCode);
    await page.click('Cancel');
    await page.becomes("document.querySelector('#sales .pill')?.textContent === 'cancelled'");
    // From here on the page's time runs faster: what it would do in some seconds it does at once.
    await page.evaluate('{ const real = setTimeout; window.setTimeout = (work, ms) => real(work, ms / 50); }');
    await admin(gateway, 'DELETE', 'tokens/till-1', undefined, asRoot);
    await page.becomes("!document.getElementById('gate').hidden");
    expect(await page.shown('main > section h2')).toEqual(['Token']);
    // The page does not send a token again that was refused: each would be a wrong login.
    const refused = () => gateway.logged('request-refused').length;
    const seconds = (n: number) => page.evaluate(`new Promise((resolve) => setTimeout(resolve, ${n * 1000}))`);
    await seconds(10);
    const before = refused();
    await seconds(10);
    expect(refused()).toBe(before);
    await page.logIn(await tokenOf(gateway, { name: 'till-2', role: 'cashier' }));
    await page.shows('till-2 · cashier');
    expect(refused()).toBe(before);
    expect(await page.evaluate('faults')).toEqual([]);
  });

  it('ROL-1 a viewer sees the console without a button that changes something', async () => {
    const gateway = await shop();
    await gateway.generate();
    const token = await tokenOf(gateway, { name: 'books', role: 'viewer' });
    const page = await openAs(gateway, '/', token);
    await page.shows('DH001');
    await page.shows('2 of 4 online');
    const buttons = (await page.shown('main button')) as string[];
    expect(buttons.filter((it) => !/^[▸▾]|CSV/.test(it))).toEqual([]);
    expect(await page.shown('main form input, main form select')).toEqual([]);
    await page.evaluate('document.querySelector(\'header a[href="/registry"]\').click()');
    await page.becomes("document.title === 'paybox gateway: who is who'");
    await page.shows('VVB000004');
    expect(await page.shown('#rows button, #add')).toEqual([]);
    expect(await page.shown('#tabs a')).toEqual(['Partners', 'Accounts', 'Boxes', 'Sources', 'Audit']);
    await page.click('Log out');
    await page.becomes("!document.getElementById('gate').hidden");
    expect(await page.shown('main > section h2')).toEqual(['Token']);
  });

  it('ROL-4 ROL-5 an admin makes, lists and revokes tokens in the console, and sees who did what', async () => {
    const gateway = await shop();
    const page = await openAs(gateway, '/registry', ROOT);
    await page.evaluate("location.hash = 'tokens'");
    await page.shows('Nothing here.');
    await page.click('Add a token');
    await page.evaluate(`(() => {
      const { elements } = document.getElementById('form');
      elements.name.value = 'till-3';
      elements.boxes.value = '${BOX4.terminalCode} ${BOX1.terminalCode}';
      document.getElementById('form').requestSubmit();
    })()`);
    await page.becomes("document.querySelector('.made')?.textContent.startsWith('paybox_')");
    const token = String(await page.evaluate("document.querySelector('.made').textContent"));
    await page.evaluate("document.getElementById('cancel').click()");
    await page.becomes(`!document.body.innerHTML.includes('${token}')`);
    await page.shows('VVB000001 VVB000004');
    const caller = () => admin(gateway, 'GET', 'caller', undefined, { authorization: `Bearer ${token}` });
    expect((await caller()).body).toMatchObject({ name: 'till-3', tills: [BOX1.terminalCode, BOX4.terminalCode] });
    await page.click('Revoke');
    await page.becomes("document.getElementById('dialog').open");
    await page.evaluate("document.getElementById('form').requestSubmit()");
    await eventually('the token to be refused', async () => (await caller()).status === 401);
    await page.shows('Nothing here.');
    await page.evaluate("location.hash = 'audit'");
    await page.shows('tokens/till-3');
    await page.shows('127.0.0.1');
    expect(await page.evaluate('faults')).toEqual([]);
  });
});
