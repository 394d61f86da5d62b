import { readdir, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { loginOf } from '../../src/protocol/keys.ts';
import { boxTopic } from '../../src/protocol/topics.ts';
import { BOX1 } from '../gateway/harness.ts';
import { loginAs } from '../gateway/mqtt-login.ts';
import { loginStatus } from '../support/asking-box.ts';
import { connectFakeBox } from '../support/fake-box.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { bootRealBox } from './real-box.ts';
import {
  ADMIN,
  enrolled,
  expectWorthless,
  gatewayWith,
  helloBy,
  NAMES,
  pushedTo2,
  refusedByGateway,
} from './stolen-card-fixture.ts';

describe('whoever has the card of a box', () => {
  it('THR-21 a stolen card holds no secret of gateway, partner or another box, and its own for its owner only', async () => {
    const dataDir = await temporaryFolder();
    const gateway = await gatewayWith({}, dataDir);
    await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' });
    const box = await enrolled(gateway);
    expect(await pushedTo2(gateway, 'DH1')).toBe('SUCCESS');
    await box.close();
    const files = await filesIn(box.dataDir);
    const own = (await readFile(join(box.dataDir, 'secret'), 'utf8')).trim();
    const secrets = [BOX1.secret, loginOf(BOX1.secret), 'demo-secret', 'other-secret', ADMIN];
    expect(files.size).toBeGreaterThan(1);
    for (const [name, { bytes, mode }] of files) {
      for (const secret of secrets) expect([name, secret, bytes.includes(secret)]).toEqual([name, secret, false]);
      if (bytes.includes(own) || bytes.includes(loginOf(own))) expect([name, mode]).toEqual(['secret', 0o600]);
    }
    await gateway.close();
    for (const [name, { mode }] of await filesIn(dataDir)) expect([name, mode]).toEqual([name, 0o600]);
  });

  it('THR-21 a stolen card logs in as no other box', async () => {
    const gateway = await gatewayWith({});
    const box1 = await connectFakeBox({ gateway, identity: BOX1, transport: 'mqtt' });
    const box = await enrolled(gateway);
    const secret = (await readFile(join(box.dataDir, 'secret'), 'utf8')).trim();
    await box.close();
    await expect(loginAs(gateway, { terminalCode: BOX1.terminalCode, secret })).rejects.toMatchObject({ code: 4 });
    expect(await loginStatus(gateway.origin, BOX1.terminalCode, secret)).toBe(401);
    const thief = await loginAs(gateway, { ...NAMES, secret });
    const asBox1 = await helloBy(thief, { ...BOX1, secret });
    expect(await refusedByGateway(gateway, thief, NAMES.terminalCode, asBox1)).toBe('WRONG_BOX');
    const ended = thief.ended;
    thief.client.publish(boxTopic(BOX1.terminalCode, 'up'), asBox1, { qos: 1 });
    await ended;
    expect((await gateway.sendQr()).body.status).toBe('SUCCESS');
    expect(box1.of('refused')).toEqual([]);
  });

  it('THR-21 a stolen card is worth nothing once its secret is another in the configuration', async () => {
    const dataDir = await temporaryFolder();
    const [old, current] = ['The-secret-of-this-box-before', 'The-secret-of-this-box-after'];
    const first = await gatewayWith({ secret: old }, dataDir);
    const link = { transport: 'mqtt', url: first.mqttUrl };
    const box = await bootRealBox({ ...NAMES, secret: old }, link);
    await eventually('online', async () => (await box.status()).online);
    expect(await pushedTo2(first, 'DH1')).toBe('SUCCESS');
    await first.close();
    await expectWorthless(await gatewayWith({ secret: current }, dataDir), old, current);
  });
});

async function filesIn(folder: string): Promise<Map<string, { bytes: Buffer; mode: number }>> {
  const names = (await readdir(folder, { recursive: true, withFileTypes: true })).filter((it) => it.isFile());
  const read = names.map(async ({ parentPath, name }) => {
    const path = join(parentPath, name);
    return [name, { bytes: await readFile(path), mode: (await stat(path)).mode & 0o777 }] as const;
  });
  return new Map(await Promise.all(read));
}
