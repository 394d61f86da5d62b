import { cp, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { eventually, temporaryFolder } from '../support/net.ts';
import { bootRealBox } from './real-box.ts';
import { enrolled, expectWorthless, gatewayWith, NAMES, operate, pushedTo2 } from './stolen-card-fixture.ts';

describe('whoever has the card of a box', () => {
  it('THR-21 a stolen card is worth nothing once its secret is forgotten, although its copy of the box runs at that moment', async () => {
    const gateway = await gatewayWith({});
    const box = await enrolled(gateway);
    const old = (await readFile(join(box.dataDir, 'secret'), 'utf8')).trim();
    await box.close();
    const copy = await temporaryFolder();
    await cp(box.dataDir, copy, { recursive: true });
    const enrolment = { enrolment: { url: gateway.origin } };
    const thief = await bootRealBox(NAMES, { transport: 'mqtt', url: gateway.mqttUrl }, copy, enrolment);
    await eventually('the thief to be in', async () => (await thief.status()).online);
    const before = gateway.log.filter((it) => it.event === 'box-connected').length;
    await operate(gateway, `/boxes/${NAMES.terminalCode}/forget`);
    await eventually('the thief to be out', async () => !(await thief.status()).online);
    expect(await pushedTo2(gateway, 'DH1')).toBe('FAILED');
    // Both show a code: that of the box in the shop is what its owner types.
    const again = await enrolled(gateway, await temporaryFolder());
    const current = (await readFile(join(again.dataDir, 'secret'), 'utf8')).trim();
    expect(await pushedTo2(gateway, 'DH2')).toBe('SUCCESS');
    expect((await again.status()).order?.orderId).toBe('DH2');
    expect((await thief.status()).online).toBe(false);
    expect(gateway.log.filter((it) => it.event === 'box-connected')).toHaveLength(before + 1);
    await thief.close();
    await again.close();
    await expectWorthless(gateway, old, current);
  });
});
