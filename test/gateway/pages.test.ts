import sharp from 'sharp';
import { describe, expect, it } from 'vitest';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import { decodeQrTwice } from '../support/qr-decoders.ts';
import {
  ACCOUNT,
  BOX1,
  FOREIGN_ACCOUNT,
  failed,
  GENERATE,
  OTHER_ACCOUNT,
  order,
  partnerServer,
  qrWithoutText,
  testGateway,
} from './harness.ts';
import { openPage as open } from './page.ts';
import { missing, note } from './pages-fixture.ts';

it.each([
  ['/', ['/console.css', '/console.js']],
  ['/registry', ['/console.css', '/registry.js']],
  ['/welcome', ['/console.css', '/welcome.css', '/welcome.js']],
  ['/docs', ['/docs/swagger-ui.css', '/docs/swagger-ui-bundle.js', '/docs/docs.js']],
])('the page %s loads, with all that it needs, from the gateway alone', async (path, assets) => {
  const gateway = await testGateway();
  const page = await fetch(`${gateway.origin}${path}`);
  expect([page.status, page.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
  const policy = page.headers.get('content-security-policy') ?? '';
  expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self';");
  expect(policy).toContain("frame-ancestors 'none'");
  expect(policy).not.toMatch(/unsafe|https?:|\*/);
  const html = await page.text();
  const links = [...html.matchAll(/(?:src|href|action)="([^"]*)"/g)].map((match) => match[1] ?? '');
  expect(links).toEqual(expect.arrayContaining(assets));
  expect(links.filter((link) => !/^\/(?!\/)|^data:,$/.test(link))).toEqual([]);
  for (const link of links.filter((it) => it.startsWith('/'))) {
    const answer = await fetch(`${gateway.origin}${link}`);
    expect([link, answer.status]).toEqual([link, 200]);
    const type = answer.headers.get('content-type');
    if (link.endsWith('.js')) expect(type).toContain('text/javascript');
    if (link.endsWith('.css')) expect(type).toContain('text/css');
    expect((await answer.text()).length).toBeGreaterThan(50);
  }
});

it.each([
  'console.js',
  'elements.js',
  'begin.js',
  'order-calls.js',
  'md5.js',
  'welcome.html',
  'welcome.css',
  'welcome.js',
  'welcome-parts.js',
  'welcome-words.js',
  'enrol.js',
  'calls.js',
  'credits.js',
  'sources.js',
  'faults.js',
  'resend.js',
  'sell.js',
  'gateway.js',
  'registry.js',
  'registry-forms.js',
  'tokens.js',
  'registry.html',
  'console.css',
  'console.html',
  'docs.html',
  'docs.js',
])('the page file %s has no address outside of the gateway', async (file) => {
  const { readFile } = await import('node:fs/promises');
  const text = await readFile(new URL(`../../src/gateway/console/pages/${file}`, import.meta.url), 'utf8');
  expect(text).not.toMatch(/https?:\/\/(?!127\.0\.0\.1)|["'(]\/\/|innerHTML|insertAdjacentHTML|document\.write/);
});

it('tells that it is well', async () => {
  const gateway = await testGateway();
  const answer = await fetch(`${gateway.origin}/healthz`);
  expect([answer.status, await answer.json()]).toEqual([
    200,
    { status: 'ok', mode: 'sandbox', callbacks: { waiting: 0, failed: 0, oldestWaitingSeconds: 0 } },
  ]);
});

it('counts pushes by result, callbacks and boxes for Prometheus', async () => {
  const partner = await partnerServer();
  const gateway = await testGateway({ callback: { url: partner.url } });
  await gateway.sendQr();
  await connectFakeBox({ gateway, identity: BOX1, transport: 'http' });
  await gateway.sendQr();
  await gateway.testCallback();
  const lines = await eventually('a delivered callback', async () => {
    const answer = await fetch(`${gateway.origin}/metrics`);
    expect(answer.headers.get('content-type')).toContain('text/plain; version=0.0.4');
    const text = await answer.text();
    return text.includes('{result="delivered"} 1') && text.split('\n');
  });
  expect(lines).toEqual(
    expect.arrayContaining([
      'paybox_gateway_pushes_total{result="BOX_OFFLINE"} 1',
      'paybox_gateway_pushes_total{result="SUCCESS"} 1',
      'paybox_gateway_boxes_online 1',
      'paybox_gateway_send_qr_seconds_count 2',
    ]),
  );
  // Measured from the first scrape on.
  const again = await (await fetch(`${gateway.origin}/metrics`)).text();
  expect(again).toMatch(/^paybox_gateway_event_loop_delay_max_seconds \d+(\.\d+)?(e-\d+)?$/m);
});

describe('the picture of a QR', () => {
  it('GEN-4 GEN-5 is read by two decoders as the qrCode of the answer', async () => {
    const gateway = await testGateway();
    for (const change of [
      {},
      { amount: 9_999_999_999_999, bankAccount: 'Z'.repeat(19), content: 'x'.repeat(25) },
      { qrType: 1, terminalCode: BOX1.terminalCode },
    ]) {
      const { body } = await gateway.generate(change);
      const picture = await fetch(String(body.qrLink));
      expect(picture.headers.get('content-type')).toBe('image/svg+xml');
      const svg = Buffer.from(await picture.arrayBuffer());
      expect(decodeQrTwice(await sharp(svg).png().toBuffer())).toEqual([body.qrCode, body.qrCode]);
    }
  });

  it('GEN-4 is linked by the name under which the caller found the gateway', async () => {
    const gateway = await testGateway();
    const { port } = new URL(gateway.origin);
    const headers = { authorization: `Bearer ${await gateway.token()}`, 'content-type': 'application/json' };
    const url = `http://localhost:${port}/vqr${GENERATE}`;
    const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify(order()) });
    const { qrLink } = (await answer.json()) as { qrLink: string };
    expect(qrLink).toMatch(new RegExp(`^http://localhost:${port}/qr/`));
    expect((await fetch(qrLink)).status).toBe(200);
  });

  it('is 404 for what is no reference', async () => {
    const gateway = await testGateway();
    for (const ref of ['none', '../x', 'A'.repeat(22), "'; drop table qr_codes; --"]) {
      const answer = await fetch(`${gateway.origin}/qr/${encodeURIComponent(ref)}`);
      expect([ref, answer.status, await answer.json()]).toEqual([ref, 404, failed('E96')]);
    }
  });
});

describe('in a browser', () => {
  it.skipIf(missing)(
    `THR-6 the console shows an order from push to payment, hostile texts as texts${note}`,
    async () => {
      const partner = await partnerServer((_call, response) =>
        response.end('<script>document.title = "pwned"</script>'),
      );
      const holder = '<img src=x onerror="document.title=2">';
      const accounts = [{ ...ACCOUNT, userBankName: holder }, OTHER_ACCOUNT, FOREIGN_ACCOUNT];
      const gateway = await testGateway({ callback: { url: partner.url }, config: { accounts } });
      const page = await open(`${gateway.origin}/`);
      await page.shows('No orders yet');
      await page.shows('0 of 4 online');
      await page.shows(holder);
      await connectFakeBox({ gateway, identity: BOX1, transport: 'http' });
      await page.shows('1 of 4 online');
      const hostile = '<script>document.title="pwned"</script><img src=x onerror="document.title=1">';
      const orderId = '"><b>DH</b>';
      await gateway.sendQr({ content: hostile, orderId, qrCode: qrWithoutText() });
      await page.shows(hostile);
      await page.shows(orderId);
      await page.shows('50.000 ₫');
      await page.becomes("document.querySelector('#orders .pill.live')?.textContent === 'shown'");
      await page.click('Pay');
      await page.becomes("document.querySelector('#orders .pill.good')?.textContent === 'paid'");
      await page.becomes("document.querySelector('#callbacks .pill')?.textContent === 'delivered'");
      await page.click('▸');
      await page.shows('<script>document.title = "pwned"</script>');
      await page.click('Resend');
      await page.shows('Attempt 2');
      await page.becomes("document.title === 'paybox gateway'");
      await page.becomes("document.querySelectorAll('main script, main img, main b').length === 0");
      expect(await page.evaluate('faults')).toEqual([]);
      expect(await page.heldBack()).toEqual([]);
      const injected =
        "document.body.append(Object.assign(document.createElement('div'), { innerHTML: '<img src=x onerror=\"document.title=3\">' }))";
      await page.evaluate(injected);
      await eventually('the policy to hold it back', async () =>
        JSON.stringify(await page.heldBack()).includes('script-src-attr'),
      );
      expect(await page.evaluate('document.title')).toBe('paybox gateway');
    },
  );
});
