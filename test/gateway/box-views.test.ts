import { describe, expect, it } from 'vitest';
import type { Box, BoxPage, Directory } from '../../src/gateway/common/directory.ts';
import type { HeldSession } from '../../src/gateway/common/place.ts';
import { boxViews } from '../../src/gateway/doors/box-views.ts';

const ALL = Array.from({ length: 1_000 }, (_, number): Box => {
  const terminalCode = `VVB${String(number).padStart(6, '0')}`;
  const account = String(1_000 + (number % 40));
  return { terminalCode, account, serialNumber: `S${number}`, dialect: 'paybox' } as unknown as Box;
});

const nobody = { seen: async () => new Map<string, HeldSession>() };

function directoryOf() {
  const pages: number[] = [];
  const directory = {
    boxes: async ({ limit, after = '' }: BoxPage) => {
      const page = ALL.filter((it) => it.terminalCode > after).slice(0, limit);
      pages.push(page.length);
      return page;
    },
    accountOf: async () => null,
  } as unknown as Directory;
  return { directory, pages };
}

async function codes(page: BoxPage): Promise<string[]> {
  const views = await boxViews(page, nobody, directoryOf().directory);
  return views.map((it) => (it as { terminalCode: string }).terminalCode);
}

describe('the list of boxes', () => {
  it('the list of boxes is read in parts', async () => {
    const { directory, pages } = directoryOf();
    expect(await boxViews({ limit: 10_000 }, nobody, directory)).toHaveLength(ALL.length);
    expect(Math.max(...pages)).toBeLessThan(500);
  });

  it('the list of boxes begins after the box that is named, and ends with its limit', async () => {
    const wanted = ALL.slice(301, 301 + 600).map((it) => it.terminalCode);
    expect(await codes({ limit: 600, after: 'VVB000300' })).toEqual(wanted);
    expect(await codes({ limit: 5, after: 'VVB000997' })).toEqual(['VVB000998', 'VVB000999']);
    expect(await codes({ limit: 5, after: 'VVB000999' })).toEqual([]);
  });

  it('SHA-6 the list of boxes shows sessions wherever they are, found in parts too', async () => {
    const asked: number[] = [];
    const session = { sessionId: 's', serialNumber: 'S7', agentVersion: '1.2', display: 'none', transport: 'http' };
    const hub = {
      seen: async (of: readonly string[]) => {
        asked.push(of.length);
        return new Map(
          of.includes('VVB000007') ? [['VVB000007', { ...session, terminalCode: 'VVB000007', sinceMs: 0 }]] : [],
        );
      },
    };
    const views = await boxViews({ limit: 10_000 }, hub, directoryOf().directory);
    const { sessionId, agentVersion, display, transport } = session;
    const shown = { sessionId, agentVersion, display, transport, online: true, since: '1970-01-01T00:00:00.000Z' };
    expect(views.filter((it) => it.online)).toMatchObject([{ terminalCode: 'VVB000007', ...shown }]);
    expect([asked.length, Math.max(...asked)]).toEqual([5, 250]);
  });
});
