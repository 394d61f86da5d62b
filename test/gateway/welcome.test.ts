import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import sharp from 'sharp';
import { describe, expect, it } from 'vitest';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually } from '../support/net.ts';
import { PROGRAMS, without } from '../support/programs.ts';
import { ACCOUNT, BOX1, failed, partnerServer, processed, testGateway } from './harness.ts';
import { openPage } from './page.ts';

const browser = without(PROGRAMS.chromium);
const shell = without(PROGRAMS.curl);
const missing = browser.missing || shell.missing;
const note = `${browser.note}${shell.note}`;
const PHONE = { width: 390, height: 844, deviceScaleFactor: 1, mobile: true };

const TEXTS = {
  en: {
    title: 'Your first five minutes',
    other: 'Năm phút đầu tiên',
    push: 'Show QR',
    shown: 'VVB000001 shows the QR.',
    pay: 'Pay 125.000',
    paid: 'The box says so, once.',
    copy: 'Copy',
    language: 'Tiếng Việt',
  },
  vi: {
    title: 'Năm phút đầu tiên',
    other: 'Your first five minutes',
    push: 'Hiện mã QR',
    shown: 'VVB000001 đang hiện mã QR.',
    pay: 'Trả 125.000',
    paid: 'Thiết bị báo đúng một lần.',
    copy: 'Chép',
    language: 'English',
  },
} as const;

async function open(origin: string, language: keyof typeof TEXTS = 'en') {
  const page = await openPage(`${origin}/welcome`, [`--accept-lang=${language === 'vi' ? 'vi-VN' : 'en-US'}`]);
  const fill = (name: string, value: string) =>
    page.evaluate(`(() => {
      const input = document.querySelector('#push-form [name=${name}]');
      input.value = ${JSON.stringify(value)};
      input.dispatchEvent(new Event('input', { bubbles: true }));
    })()`);
  /** Presses every copy button of a step; returns what was copied. */
  const copied = (step: string) =>
    page.evaluate(`(() => {
      const texts = [];
      const clipboard = { writeText: async (text) => texts.push(text) };
      Object.defineProperty(navigator, 'clipboard', { value: clipboard, configurable: true });
      for (const it of document.querySelectorAll('#step-${step} .commands .curl button')) it.click();
      return texts;
    })()`) as Promise<string[]>;
  return { ...page, fill, copied };
}

it('makes the MD5 of a checkSum in the browser', async () => {
  const { md5 } = (await import(new URL('../../src/gateway/console/pages/md5.js', import.meta.url).href)) as {
    md5: (text: string) => string;
  };
  for (let length = 0; length < 140; length += 1) {
    const text = `${'ậ'.repeat(length % 5)}${'x'.repeat(length)}`;
    expect(md5(text)).toBe(createHash('md5').update(text).digest('hex'));
  }
});

describe('the screen of a box of this process', () => {
  it('is a picture for admins, and there is none of any other box', async () => {
    const png = await sharp({ create: { width: 8, height: 5, channels: 3, background: 'red' } })
      .png()
      .toBuffer();
    let picture: Uint8Array | undefined;
    const boxScreen = {
      terminalCode: BOX1.terminalCode,
      pageUrl: 'http://127.0.0.1:8810/',
      picture: () => picture,
    };
    const adminToken = 'A-long-admin-token-of-a-test';
    const gateway = await testGateway({ boxScreen, config: { adminToken } });
    const headers = { authorization: `Bearer ${adminToken}` };
    const ask = (path: string) => fetch(`${gateway.origin}/_mock${path}`, { headers });
    expect(await (await ask('/about')).json()).toMatchObject({ boxPage: boxScreen.pageUrl });
    const path = `/boxes/${BOX1.terminalCode}/screen.png`;
    expect([(await ask(path)).status, (await ask('/boxes/VVB000002/screen.png')).status]).toEqual([404, 404]);
    picture = png;
    const answer = await ask(path);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'image/png']);
    expect(Buffer.from(await answer.arrayBuffer()).equals(png)).toBe(true);
    expect((await ask('/boxes/VVB000002/screen.png')).status).toBe(404);
    expect((await fetch(`${gateway.origin}/_mock${path}`)).status).toBe(401);
    const other = await testGateway();
    const none = await fetch(`${other.origin}/_mock${path}`);
    expect([none.status, await none.json()]).toEqual([404, failed('E96')]);
    expect(await other.mock('/about')).toMatchObject({ boxPage: null, partner: { hasCallback: false } });
  });
});

describe('the first steps in a browser', () => {
  it.skipIf(missing).each(['en', 'vi'] as const)(
    `THR-6 are walked from the order to its callback, by button and by command, in %s${note}`,
    async (language) => {
      const texts = TEXTS[language];
      const partner = await partnerServer(processed);
      const gateway = await testGateway({ callback: { url: partner.url } });
      await connectFakeBox({ gateway, identity: BOX1, transport: 'http' });
      const page = await open(gateway.origin, language);
      await page.command('Emulation.setDeviceMetricsOverride', PHONE);
      await page.shows(texts.title);
      await page.becomes(`document.documentElement.lang === '${language}'`);
      await page.fill('amount', '125.000');
      await page.fill('content', 'DH777');
      await page.click(texts.push);
      await page.shows(texts.shown);
      await page.becomes("document.querySelector('#screen img').naturalWidth > 0");
      await page.click(texts.pay);
      await page.shows(texts.paid);
      await page.becomes("document.querySelector('#screen img') === null");
      await page.becomes("document.querySelector('#callback-state .pill.good') !== null");
      await page.shows('"orderId":"DH777"');
      expect(partner.calls).toHaveLength(1);
      await page.becomes(`document.documentElement.scrollWidth === ${PHONE.width}`);

      await page.fill('amount', '98.000');
      await page.fill('content', "Don 'A");
      expect((await page.copied('push')).join('')).toContain(String.raw`Don '\''A`);
      await page.fill('content', 'DH778');
      const lines = await page.copied('push');
      const sum = createHash('md5').update(`demo-secret${ACCOUNT.bankAccount}98000${ACCOUNT.bankCode}`).digest('hex');
      expect(lines.join('\n')).toContain(`"checkSum":"${sum}"`);
      expect(lines.join('\n')).toContain(`${gateway.baseUrl}/api/tid/send-qr`);
      const pay = (await page.copied('pay'))[0]?.replaceAll('DH777', 'DH778').replace('125000', '98000') ?? '';
      const { stdout } = await promisify(execFile)('sh', ['-c', [...lines, pay].join('\n')]);
      expect(stdout.match(/"status":"SUCCESS"/g)).toHaveLength(2);
      await eventually('the second callback', () => partner.calls.length === 2);
      expect(partner.calls[1]?.body).toContain('"orderId":"DH778"');
      const [list = ''] = await page.copied('callback');
      expect((await promisify(execFile)('sh', ['-c', list])).stdout).toContain('DH778');

      await page.click(texts.language);
      await page.shows(texts.other);
      expect(await page.evaluate('faults')).toEqual([]);
      expect(await page.heldBack()).toEqual([]);
    },
  );

  it.skipIf(missing)(`say in words what is refused, and that no box is there${note}`, async () => {
    const gateway = await testGateway();
    const page = await open(gateway.origin);
    await page.shows('The box is not connected. Start one');
    await page.becomes("document.getElementById('pay').disabled");
    for (const [amount, content, words] of [
      ['0', 'DH1', 'The amount must be a whole number'],
      ['-5', 'DH1', 'The amount must be a whole number'],
      ['much', 'DH1', 'The order is not as expected'],
      ['1', 'x'.repeat(40), 'The content is too long'],
      ['1', 'Phở', 'The content has characters'],
    ] as const) {
      await page.fill('amount', amount);
      await page.fill('content', content);
      await page.click('Show QR');
      await page.shows(words);
      await page.fill('amount', '1');
    }
    expect(await gateway.mock('/orders')).toEqual([]);
    await page.becomes("document.getElementById('pay').disabled");
    await page.fill('content', 'DH1');
    await page.click('Show QR');
    await page.shows('it shows nothing');
    await page.becomes("document.querySelector('#screen img').naturalWidth > 0");
    await page.click('Pay 1');
    await page.shows('✓ Paid');
    await page.shows('No callback address is set');
    await page.shows('--callback-url');
    expect(await gateway.mock('/payments')).toHaveLength(1);
    expect(await page.evaluate('faults')).toEqual([]);
  });

  it.skipIf(missing)(`take away the QR of an order that is cancelled${note}`, async () => {
    const gateway = await testGateway();
    await connectFakeBox({ gateway, identity: BOX1, transport: 'http' });
    const page = await open(gateway.origin);
    await page.shows('online');
    await page.click('Show QR');
    await page.becomes("document.querySelector('#screen img')?.naturalWidth > 0");
    const [order] = await gateway.mock('/orders');
    await gateway.mock(`/orders/${order?.id}/cancel`, 'POST');
    await page.becomes("document.querySelector('#screen img') === null && document.getElementById('pay').disabled");
  });

  it.skipIf(missing)(`ask for the admin token, and for a password that is not the demo's${note}`, async () => {
    const adminToken = 'A-long-admin-token-of-a-test';
    const partners = [{ username: 'me', password: 'mật-khẩu', accounts: [ACCOUNT.bankAccount] }];
    const gateway = await testGateway({ config: { adminToken, partners } });
    await connectFakeBox({ gateway, identity: BOX1, transport: 'http' });
    const page = await open(gateway.origin);
    await page.becomes("!document.getElementById('gate').hidden && document.getElementById('walk').hidden");
    await page.evaluate(`
      document.querySelector('[name=token]').value = '${adminToken}';
      document.getElementById('login').requestSubmit();
    `);
    await page.shows('Password of the partner');
    await page.fill('password', 'wrong');
    await page.click('Show QR');
    await page.shows('The password of the partner is wrong');
    await page.fill('password', 'mật-khẩu');
    await page.click('Show QR');
    await page.shows('VVB000001 shows the QR.');
    expect((await page.copied('callback')).join('')).toContain('Bearer $ADMIN_TOKEN');
    expect(await page.evaluate('faults')).toEqual([]);
  });

  it.skipIf(missing)(`MOD-2 are for sandboxes, which a live gateway says${note}`, async () => {
    const gateway = await testGateway({ config: { mode: 'live', partners: [], accounts: [], boxes: [] } });
    const page = await open(gateway.origin, 'vi');
    await page.shows('Trang này dành cho môi trường thử nghiệm');
    await page.shows('npx --no -- paybox up');
    await page.becomes("document.getElementById('walk').hidden");
    expect(await page.evaluate('faults')).toEqual([]);
  });
});
