// biome-ignore-all lint/suspicious/noTemplateCurlyInString: it is how scenarios write variables
import { describe, expect, it } from 'vitest';
import type { z } from 'zod';
import { openPaybox, type PayboxOptions } from '../../src/bench/library/index.ts';
import type {
  BoxState,
  ExpectWords,
  FaultName,
  FaultWords,
  OrderStatus,
  ScreenKind,
} from '../../src/bench/library/words.ts';
import type { expectation } from '../../src/bench/scenarios/expect.ts';
import type { faultArgs } from '../../src/bench/scenarios/fault.ts';
import { SCREEN_KINDS } from '../../src/bench/scenarios/screen-kind.ts';
import { FAULT_NAMES } from '../../src/protocol/faults.ts';
import { BOX_STATES, ORDER_STATUSES } from '../../src/protocol/statuses.ts';
import { decodeQrTwice } from '../support/qr-decoders.ts';
import { opened, shop, thrownBy } from './opened.ts';

describe('the library for tests', () => {
  it('sells, is paid, and calls the shop back', async () => {
    const { taken, callbackUrl } = await shop();
    const paybox = await opened({ callbackUrl });
    expect(paybox.serviceUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/vqr$/);
    const order = await paybox.push({ amount: 50_000, content: 'DH1' });
    await paybox.expect({ screen: 'payment', text: '50.000 ₫', qr: order.qrCode });
    expect(decodeQrTwice(await paybox.screen())).toEqual([order.qrCode, order.qrCode]);
    const { transactionId } = await paybox.pay({ amount: 50_000, content: 'DH1' });
    await paybox.expect({ state: 'paid', callback: 'delivered' });
    expect(taken).toMatchObject([{ transactionid: transactionId, amount: 50_000 }]);
    expect(await paybox.callbacks()).toMatchObject([{ transactionId, status: 'delivered' }]);
    expect(await paybox.text()).toContain('50.000 ₫');
    expect(await paybox.report()).toContain('send-qr: SUCCESS');
    await paybox.reset();
    expect(await paybox.status()).toMatchObject({ state: 'idle', online: true });
    expect(await thrownBy(paybox.expect({ callback: 'delivered' }))).toMatchObject({
      name: 'PayboxRefusal',
      message: expect.stringMatching(/^expect: callback: this paybox has paid nothing with pay\(\); name/),
    });
  });

  it.each<[options: unknown, message: string]>([
    [5, 'openPaybox: expected an object'],
    [[], 'openPaybox: expected an object'],
    [null, 'openPaybox: expected an object'],
    [{ time: 'virtual' }, 'openPaybox: unknown key time'],
    [{ screens: 5 }, 'openPaybox: screens: expected a folder, or false'],
    [{ screens: '' }, 'openPaybox: screens: expected a folder, or false'],
    [{ boxes: 2n }, 'open: not a value of JSON'],
  ])('is not opened with %o', async (options, message) => {
    await expect(openPaybox(options as PayboxOptions)).rejects.toThrow(message);
  });

  it('has the words of scenarios as its types', () => {
    // Compiled, not run: what can be written here is a step there.
    const all: { expect: z.input<typeof expectation>; fault: z.input<typeof faultArgs> } | undefined = undefined as
      | {
          expect: Omit<ExpectWords, 'callback'> & { callback?: Exclude<ExpectWords['callback'], string> };
          fault: FaultWords;
        }
      | undefined;
    const names: readonly FaultName[] = FAULT_NAMES;
    const kinds: readonly ScreenKind[] = SCREEN_KINDS;
    const [states, statuses]: [readonly BoxState[], readonly OrderStatus[]] = [BOX_STATES, ORDER_STATUSES];
    const known: [readonly (typeof BOX_STATES)[number][], readonly (typeof ORDER_STATUSES)[number][]] = [
      states,
      statuses,
    ];
    const ours: readonly (typeof FAULT_NAMES)[number][] = names;
    const shown: readonly (typeof SCREEN_KINDS)[number][] = kinds;
    expect([all, ours.length, shown.length]).toEqual([undefined, FAULT_NAMES.length, SCREEN_KINDS.length]);
    expect(known).toEqual([BOX_STATES, ORDER_STATUSES]);
  });
});
