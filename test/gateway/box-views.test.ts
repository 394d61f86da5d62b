import { describe, expect, it } from 'vitest';
import type { Hub } from '../../src/gateway/boxes/hub.ts';
import type { Box, BoxPage, Directory } from '../../src/gateway/common/directory.ts';
import { boxViews } from '../../src/gateway/doors/box-views.ts';

const ALL = Array.from({ length: 1_000 }, (_, number): Box => {
  const terminalCode = `VVB${String(number).padStart(6, '0')}`;
  const account = String(1_000 + (number % 40));
  return { terminalCode, account, serialNumber: `S${number}`, dialect: 'paybox' } as unknown as Box;
});

const hub = { session: () => undefined } as unknown as Hub;

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
  const views = await boxViews(page, hub, directoryOf().directory);
  return views.map((it) => (it as { terminalCode: string }).terminalCode);
}

describe('the list of boxes', () => {
  it('the list of boxes is read in parts', async () => {
    const { directory, pages } = directoryOf();
    expect(await boxViews({ limit: 10_000 }, hub, directory)).toHaveLength(ALL.length);
    expect(Math.max(...pages)).toBeLessThan(500);
  });

  it('the list of boxes begins after the box that is named, and ends with its limit', async () => {
    const wanted = ALL.slice(301, 301 + 600).map((it) => it.terminalCode);
    expect(await codes({ limit: 600, after: 'VVB000300' })).toEqual(wanted);
    expect(await codes({ limit: 5, after: 'VVB000997' })).toEqual(['VVB000998', 'VVB000999']);
    expect(await codes({ limit: 5, after: 'VVB000999' })).toEqual([]);
  });
});
