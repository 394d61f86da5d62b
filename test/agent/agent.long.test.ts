import { describe, expect, it } from 'vitest';
import type { Frame } from '../../src/device/display/contract.ts';
import type { Scene } from '../../src/device/scene.ts';
import type { LinkedAccount } from '../../src/protocol/messages.ts';
import { LINK } from '../box/samples.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { boxWith } from './box-with.ts';

describe('an agent', () => {
  it('AGT-13 TLS-1 shows once an account that changed while the box was off, and always a link that is not encrypted', async () => {
    const dataDir = await temporaryFolder();
    const scenes: Scene[] = [];
    const surface = { kind: 'panel', qr: null, accents: true } as const;
    const draw = async (_: Frame, scene: Scene) => void scenes.push(scene);
    const recorder = { driver: 'recorder', open: async () => ({ surface, draw, close: async () => undefined }) };
    /** What a box that starts with this account draws until it rests. */
    const drawnWith = async (account: LinkedAccount) => {
      scenes.length = 0;
      const change = { displays: [recorder] as const, dataDir, endedHoldMs: 50 };
      const { agent } = await boxWith(change, { account, address: 'mqtt://192.0.2.1:1883' });
      await eventually('rest', () => scenes.at(-1)?.kind === 'idle' && scenes.at(-1));
      await agent.close();
      return scenes.filter(({ kind }) => kind === 'account' || kind === 'idle');
    };
    const other = { bankAccount: '9988776655', bankCode: 'VCB', userBankName: 'TRAN THI B' };
    const idle = { kind: 'idle', plainLink: true };
    expect(await drawnWith(LINK)).toMatchObject([{ ...idle, holder: LINK }]);
    expect(await drawnWith(other)).toMatchObject([
      { kind: 'account', holder: other, previous: LINK },
      { ...idle, holder: other },
    ]);
    expect(await drawnWith(other)).toMatchObject([{ ...idle, holder: other }]);
  });
});
