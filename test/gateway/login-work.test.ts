import { expect, it, vi } from 'vitest';
import { loginOf } from '../../src/protocol/keys.ts';
import { BOX1, testGateway } from './harness.ts';
import { loginAs } from './mqtt-login.ts';

vi.mock('../../src/protocol/keys.ts', async (original) => {
  const actual = await original<typeof import('../../src/protocol/keys.ts')>();
  return { ...actual, loginOf: vi.fn(actual.loginOf) };
});

const names = [BOX1.terminalCode, 'VVB999999', ''];

it('THR-3 a login as a box takes the same work whether there is such a box or not, over HTTP', async () => {
  const gateway = await testGateway({ config: { mqtt: null } });
  const work: number[] = [];
  for (const name of names) {
    vi.mocked(loginOf).mockClear();
    const authorization = `Basic ${Buffer.from(`${name}:wrong`).toString('base64')}`;
    const { status } = await fetch(`${gateway.origin}/box/v1/messages`, { method: 'POST', headers: { authorization } });
    expect(status).toBe(401);
    work.push(vi.mocked(loginOf).mock.calls.length);
  }
  expect(work).toEqual([1, 1, 1]);
});

it('THR-3 a login as a box takes the same work whether there is such a box or not, over MQTT', async () => {
  const gateway = await testGateway();
  const work: number[] = [];
  for (const terminalCode of names.slice(0, 2)) {
    const trying = loginAs(gateway, { ...BOX1, terminalCode, secret: 'another-secret-of-a-box' });
    // What the client itself makes of its secret does not count.
    vi.mocked(loginOf).mockClear();
    await expect(trying).rejects.toMatchObject({ code: 4 });
    work.push(vi.mocked(loginOf).mock.calls.length);
  }
  expect(work).toEqual([1, 1]);
});
