import { describe, expect, it } from 'vitest';
import { enrolmentUrl } from '../../src/protocol/enrolment.ts';
import { AskingBox } from '../support/asking-box.ts';
import { eventually } from '../support/net.ts';
import { cassoList, failing, listServer } from '../support/provider-lists.ts';
import { moved, PROVIDERS, type Provider } from '../support/providers.ts';
import {
  ACCOUNT,
  BOX1,
  BOXES,
  GENERATE,
  partnerServer,
  processed,
  SEND_QR,
  status,
  TEST_CALLBACK,
  testGateway,
} from './harness.ts';
import { openPage as open } from './page.ts';
import { missing, note } from './pages-fixture.ts';

describe('in a browser', () => {
  const sepay = PROVIDERS['sepay by key'] as Provider;
  it.skipIf(missing)(`the console says when a list is only the newest of its rows${note}`, async () => {
    const gateway = await testGateway();
    const generated = async (many: number) => {
      for (let i = 0; i < many; i += 1) expect((await gateway.generate({ orderId: `O${i}` })).status).toBe(200);
    };
    await generated(49);
    const page = await open(`${gateway.origin}/`);
    await page.becomes("document.getElementById('orders-count').textContent === '49'");
    await generated(2);
    await page.becomes("document.getElementById('orders-count').textContent === 'newest 50'");
  });

  it.skipIf(missing)(`SRC-30 THR-6 the console shows sources, hostile texts as texts${note}`, async () => {
    const list = cassoList();
    const hostile = '<img src=x onerror="document.title=1">';
    list.first.push(failing(500, JSON.stringify({ message: hostile })));
    const casso = { name: 'casso-till', ...list.options(await listServer(list)) };
    const gateway = await testGateway({ config: { sources: [casso, { name: 'sepay-till', ...sepay.options }] } });
    const page = await open(`${gateway.origin}/`);
    await page.shows('list failed');
    await page.shows(hostile);
    await page.becomes("document.querySelectorAll('#sources tbody tr').length === 2");
    await page.shows('no list in the file');
    await page.shows('none yet');
    const { headers, body } = sepay.call(sepay.body(moved({ bankAccount: ACCOUNT.bankAccount })), {
      nowMs: Date.now(),
    });
    await fetch(`${gateway.origin}/hooks/sepay-till`, { method: 'POST', headers, body });
    await page.becomes("!document.querySelectorAll('#sources tbody tr')[1].innerText.includes('none yet')");
    await page.shows('MBVCB.3278907687 DH001 thanh toán/Nguyễn Á');
    await page.becomes("document.title === 'paybox gateway'");
    expect(await page.evaluate('faults')).toEqual([]);
  });

  it.skipIf(missing)(
    `SYN-5 CBK-7 the console sends all that failed again, and tells which box is not told${note}`,
    async () => {
      const replies = Array.from({ length: 3 }, () => status(400));
      const partner = await partnerServer(...replies, processed);
      const gateway = await testGateway({ callback: { url: partner.url } });
      const page = await open(`${gateway.origin}/`);
      await page.shows('No callbacks yet');
      await page.becomes("document.getElementById('resend-form').hidden");
      for (let i = 0; i < 3; i += 1) await gateway.testCallback();
      await page.shows('3 failed');
      await page.becomes(
        "[...document.querySelectorAll('#payments td')].some((it) => /VVB000002not reported since .*: the box is offline/.test(it.textContent))",
      );
      await page.evaluate("document.getElementById('resend-partner').value = 'demo'");
      await page.click('Retry failed callbacks');
      await page.shows('3 are sent again');
      await page.becomes("document.querySelectorAll('#callbacks .pill.good').length === 3");
      await page.becomes("document.getElementById('resend-form').hidden");
      expect(await page.evaluate('faults')).toEqual([]);
    },
  );

  it.skipIf(missing)(`the console asks for the admin token and then opens${note}`, async () => {
    const gateway = await testGateway({ config: { adminToken: 'A-long-admin-token-of-a-test' } });
    const page = await open(`${gateway.origin}/`);
    await page.becomes("!document.getElementById('gate').hidden");
    await page.evaluate(`
      document.querySelector('[name=token]').value = 'A-long-admin-token-of-a-test';
      document.getElementById('login').requestSubmit();
    `);
    await page.shows('0 of 4 online');
    await page.becomes("document.getElementById('gate').hidden");
    expect(await page.evaluate('faults')).toEqual([]);
  });

  it.skipIf(missing)(
    `ENR-3 the console enrols a box by the code in the address of its QR, and not by itself${note}`,
    async () => {
      const boxes = [{ terminalCode: BOX1.terminalCode, serialNumber: BOX1.serialNumber }];
      const gateway = await testGateway({ config: { adminToken: 'A-long-admin-token-of-a-test', boxes } });
      const box = new AskingBox(gateway.origin, BOX1);
      await box.ask();
      const page = await open(enrolmentUrl(gateway.origin, BOX1.terminalCode, box.code));
      await page.evaluate(`
      document.querySelector('[name=token]').value = 'A-long-admin-token-of-a-test';
      document.getElementById('login').requestSubmit();
    `);
      await page.shows('from 127.0.0.1 since');
      await page.shows('has no secret');
      await page.becomes(`document.querySelector('[name=code]').value === '${box.code}'`);
      expect(await box.state()).toEqual({ state: 'pending' });
      await page.evaluate("document.querySelector('[name=code]').value = '0000-0000-0000'");
      await page.click('Accept');
      await page.shows('no box shows this code');
      await page.evaluate(`document.querySelector('[name=code]').value = '${box.code.toLowerCase()}'`);
      await page.click('Accept');
      await page.shows('is accepted');
      await page.becomes("document.getElementById('enrol').hidden && location.hash === ''");
      expect(await box.agree()).toBeDefined();
      const other = new AskingBox(gateway.origin, BOX1);
      await other.ask();
      await page.shows('has a secret already');
      await page.click('Reject');
      await eventually('a box that is turned down', async () => (await other.state())?.state === 'rejected');
      expect(await page.evaluate('faults')).toEqual([]);
      expect(await page.heldBack()).toEqual([]);
    },
  );

  it
    .skipIf(missing)
    .each([
      '<img src=x onerror=document.title=4>',
      'VVB000001/"><script>document.title=4</script>',
      'VVB000001/%3Cb%3E',
    ])(`THR-6 an address that somebody made up fills nothing in: #enrol/%s${note}`, async (text) => {
    const gateway = await testGateway();
    const page = await open(new URL(`/#enrol/${text}`, gateway.origin).href);
    await page.shows('0 of 4 online');
    await page.becomes("document.getElementById('enrol').hidden");
    expect(await page.evaluate("document.querySelector('[name=code]').value + document.title")).toBe('paybox gateway');
    expect(await page.evaluate('faults')).toEqual([]);
  });

  it.skipIf(missing)(`FLT-1 FLT-4 the console orders faults, for a box too, and tells what stands${note}`, async () => {
    const gateway = await testGateway();
    const page = await open(`${gateway.origin}/`);
    await page.evaluate("document.getElementById('fault-details').open = true");
    await page.shows('FAULT PUSH TWICE');
    expect(await page.evaluate("document.querySelectorAll('#faults td.acts').length")).toBe(31);
    const orderOf = (name: string) => `[...document.querySelectorAll('#faults tr')]
      .find((it) => it.cells[0].textContent === '${name}' && it.textContent.includes('Order'))`;
    await page.evaluate("document.getElementById('fault-box').value = 'VVB000002'");
    await page.evaluate(`${orderOf('push-lost')}.querySelector('td.acts button').click()`);
    await page.shows('1 ordered');
    const standing = async () => (await gateway.mock<{ standing: object[] }>('/faults')).standing;
    expect(await standing()).toMatchObject([{ fault: 'push-lost', box: 'VVB000002' }]);
    await page.shows('VVB000002');
    await page.evaluate(`${orderOf('broker-killed')}.querySelector('td.acts button').click()`);
    await page.shows('2 ordered');
    await page.becomes("document.getElementById('fault-box').value === 'VVB000002'");
    await page.click('End');
    await page.shows('1 ordered');
    expect(await standing()).toHaveLength(1);
    expect(await page.evaluate('faults')).toEqual([]);
    expect(await page.heldBack()).toEqual([]);
  });

  it.skipIf(missing)(
    `MOD-2 the console offers no faults and no payment outside of a sandbox, and leads to the registry${note}`,
    async () => {
      const account = { ...ACCOUNT, bankAccount: '19036000111' };
      const { bankAccount } = account;
      const partner = { username: 'pho', password: 'pho-own-password', accounts: [bankAccount] };
      const boxes = BOXES.map((box) => ({ ...box, account: bankAccount }));
      const gateway = await testGateway({ config: { accounts: [account], partners: [partner], boxes, mode: 'live' } });
      const page = await open(`${gateway.origin}/`);
      await page.evaluate(`
        document.querySelector('[name=token]').value = '${gateway.asAdmin.authorization?.slice('Bearer '.length)}';
        document.getElementById('login').requestSubmit();
      `);
      await page.shows('0 of 4 online');
      await page.becomes("document.getElementById('fault-section').hidden");
      const authorization = `Bearer ${await gateway.token(partner.username, partner.password)}`;
      expect((await gateway.generate({ bankAccount }, { authorization })).status).toBe(200);
      const buttons = "[...document.querySelectorAll('#orders button')].map((it) => it.textContent).join()";
      await page.becomes(`${buttons} === 'Cancel'`);
      await page.evaluate(`document.querySelector('a[href="/registry"]').click()`);
      // The console names its boxes too.
      await page.becomes("document.title === 'paybox gateway: who is who'");
      await page.shows('VVB000004');
    },
  );

  it.skipIf(missing)(`REG-4 REG-5 the console lists, adds, links, disables and rotates rows${note}`, async () => {
    const gateway = await testGateway({ config: { registry: 'store' } });
    const page = await open(`${gateway.origin}/registry`);
    await page.shows('VVB000004');
    const rows = (text: string) =>
      page.becomes(`document.getElementById('rows').innerText.includes(${JSON.stringify(text)})`);
    const act = async (row: string, label: string) => {
      await page.evaluate(`[...document.querySelectorAll('#rows tr')].find((it) => it.textContent.includes('${row}'))
        .querySelectorAll('button').forEach((it) => it.textContent === '${label}' && it.click())`);
      await page.becomes("document.getElementById('dialog').open");
    };
    const send = async (values: Record<string, string>) => {
      await page.evaluate(`(() => {
        const { elements } = document.getElementById('form');
        for (const [name, value] of Object.entries(${JSON.stringify(values)})) elements[name].value = value;
        document.getElementById('form').dispatchEvent(new Event('change'));
        document.getElementById('form').requestSubmit();
      })()`);
    };
    const closed = () => page.becomes("!document.getElementById('dialog').open");
    const hostile = '<img src=x onerror="document.title=1">';
    await page.evaluate("location.hash = 'accounts'");
    await page.click('Add an account');
    await send({ bankAccount: '0077', bankCode: 'NONE', userBankName: hostile, partner: 'demo' });
    await page.shows('bankCode: expected the short name of a bank');
    await send({ bankCode: 'MB' });
    await closed();
    await rows(hostile);
    await page.evaluate("location.hash = 'boxes'");
    await rows('VVB000003');
    await act('VVB000003', 'Link');
    await send({ account: '0077' });
    await closed();
    await rows('0077');
    await act('VVB000003', 'Disable');
    await send({});
    await closed();
    await rows('disabled');
    await page.evaluate("document.querySelector('[name=q]').value = 'VVB000004'");
    await page.click('Search');
    await page.becomes("document.querySelectorAll('#rows tbody tr').length === 1");
    await page.evaluate("location.hash = 'partners'");
    await rows('other');
    await act('demo', 'Rotate');
    await send({});
    await page.becomes("document.querySelector('#fields .made') !== null");
    const password = String(await page.evaluate("document.querySelector('#fields .made').textContent"));
    expect(typeof (await gateway.token('demo', password))).toBe('string');
    await page.click('Close');
    await page.becomes("document.querySelector('#fields .made') === null");
    await page.evaluate("location.hash = 'sources'");
    await page.click('Add a source');
    await send({ name: 'till', proof: 'sepay apikey', key: 'key-of-the-till' });
    await closed();
    await rows('/hooks/till');
    await page.evaluate("location.hash = 'audit'");
    await rows('sources/till');
    await rows('{"account":"0077"}');
    expect(await page.evaluate('document.body.innerHTML.includes("key-of-the-till")')).toBe(false);
    expect(await page.evaluate('document.title')).toBe('paybox gateway: who is who');
    expect(await page.evaluate('faults')).toEqual([]);
    expect(await page.heldBack()).toEqual([]);
  });

  it.skipIf(missing).each([
    ['/docs', [GENERATE, SEND_QR, TEST_CALLBACK]],
    ['/docs/admin', ['/admin/v1/boxes/{name}/link', '/admin/v1/sales']],
  ])(`the documentation at %s shows every endpoint${note}`, async (at, paths) => {
    const gateway = await testGateway();
    const page = await open(`${gateway.origin}${at}`);
    for (const path of paths) await page.becomes(`document.querySelector('[data-path="${path}"]') !== null`);
    await page.becomes("performance.getEntriesByType('resource').every((it) => it.name.startsWith(location.origin))");
    expect(await page.evaluate('faults')).toEqual([]);
    expect(await page.heldBack()).toEqual([]);
  });
});
