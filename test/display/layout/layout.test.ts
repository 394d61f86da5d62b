import { describe, expect, it } from 'vitest';
import type { PixelSurface } from '../../../src/device/display/contract.ts';
import { markHeight } from '../../../src/device/display/layout/edge.ts';
import { measure } from '../../../src/device/display/layout/fonts/faces.ts';
import type { Box, Item } from '../../../src/device/display/layout/items.ts';
import { layoutPixels } from '../../../src/device/display/layout/pixels.ts';
import { besideMark, fitBesideWords, fitOn } from '../../../src/device/display/layout/room.ts';
import type { Stage } from '../../../src/device/display/layout/typography.ts';
import { fitQr, type QrFit } from '../../../src/device/display/qr.ts';
import { openRenderer, openStage } from '../../../src/device/display/render.ts';
import { formatAmount } from '../../../src/device/display/words.ts';
import { qrTextOf, type Scene } from '../../../src/device/scene.ts';
import { fc } from '../../support/properties.ts';
import { describePicture, expectGolden, glyphCache, textPicture } from '../pictures.ts';
import { anyScene, DUE, PAYMENT, payloadOf, SCENES } from '../scenes.ts';

const DESIGNED: readonly (readonly [number, number])[] = [
  [800, 480],
  [480, 320],
  [320, 240],
  [240, 240],
  [1280, 720],
  [480, 800],
];
const SMALL: readonly (readonly [number, number])[] = [
  [128, 64],
  [64, 64],
  [64, 128],
  [128, 128],
];
const LOW: readonly (readonly [number, number])[] = [
  [64, 32],
  [96, 32],
];
const OTHER: readonly (readonly [number, number])[] = [
  [320, 480],
  [320, 170],
  [64, 32],
  [1920, 200],
  [16, 16],
];
const source = glyphCache();

function pictureOf(scene: Scene, stage: Stage): Item[] {
  const fit = fitOf(scene, stage);
  return layoutPixels(scene, fit?.ok ? fit.qr : undefined, stage);
}

function fitOf(scene: Scene, stage: Stage): QrFit | undefined {
  const { surface } = stage;
  if (scene.kind === 'enrol') return fitBesideWords(surface, scene.url);
  const text = qrTextOf(scene);
  const fit = text === undefined ? undefined : fitOn(surface, text);
  return text !== undefined && fit && 'sandbox' in scene ? besideMark(surface, text, fit, markHeight(stage)) : fit;
}

const stageOf = (width: number, height: number) => openStage({ kind: 'pixels', width, height }, source);

const overlap = (a: Box, b: Box) =>
  a.x < b.x + b.width && b.x < a.x + a.width && a.y < b.y + b.height && b.y < a.y + a.height;

const inside = (a: Box, { width, height }: PixelSurface) =>
  a.x >= 0 && a.y >= 0 && a.x + a.width <= width && a.y + a.height <= height;

/** The amount, and what it lacks. */
const amountsOf = (scene: Scene & { amount: number }) => {
  const due = 'due' in scene && scene.due ? [Math.abs(scene.due.amount - scene.due.paid)] : [];
  return [scene.amount, ...due].map(formatAmount);
};

/** Everything that is wrong with where things are. */
function faults(items: readonly Item[], scene: Scene, surface: PixelSurface): string[] {
  const texts = items.filter((item) => item.kind === 'text');
  const code = items.findIndex((item) => item.kind === 'qr');
  const wrong: string[] = [];
  for (const item of items) if (!inside(item.box, surface)) wrong.push(`leaves the screen: ${item.kind}`);
  for (const [index, text] of texts.entries()) {
    if (measure(text.text, text.face) > text.box.width) wrong.push(`wider than its box: ${text.text}`);
    if (/\p{Cc}/u.test(text.text)) wrong.push('a control character');
    for (const char of text.text) {
      const glyph = text.face.glyphs.get(char);
      if (glyph === undefined) wrong.push(`no letter for ${char}`);
      else if (glyph.top < 0 || glyph.top + glyph.height > text.box.height) wrong.push(`${char} leaves its line`);
    }
    for (const other of texts.slice(index + 1)) {
      if (overlap(text.box, other.box)) wrong.push(`"${text.text}" and "${other.text}" overlap`);
    }
    const figure = /[\d.]+ ₫/.exec(text.text)?.[0];
    if ('amount' in scene && text.face.spec.charset === 'figures' && !amountsOf(scene).includes(figure ?? '')) {
      wrong.push(`an amount that is not the scene's: ${text.text}`);
    }
  }
  const qr = items[code];
  if (qr !== undefined) {
    for (const item of items.slice(code + 1)) if (overlap(item.box, qr.box)) wrong.push(`${item.kind} on the QR`);
  }
  return wrong;
}

const isOffline = (scene: Scene) => 'online' in scene && !scene.online;
const isPlain = (scene: Scene) => 'plainLink' in scene && scene.plainLink && !isOffline(scene);

describe('a picture', () => {
  it.each([...DESIGNED, ...SMALL, ...OTHER])(
    'a picture of %i x %i keeps every text in its place, whatever the scene',
    async (width, height) => {
      const stage = await stageOf(width, height);
      fc.assert(
        fc.property(anyScene, (scene) => {
          expect(faults(pictureOf(scene, stage), scene, stage.surface)).toEqual([]);
        }),
        { numRuns: 150 },
      );
      for (const scene of Object.values(SCENES)) {
        expect(faults(pictureOf(scene, stage), scene, stage.surface)).toEqual([]);
      }
    },
  );

  it.each([...DESIGNED, ...SMALL])('a picture of %i x %i is as agreed', async (width, height) => {
    const stage = await stageOf(width, height);
    const pictures = Object.entries(SCENES).map(
      ([name, scene]) => `== ${name}\n${describePicture(pictureOf(scene, stage))}`,
    );
    await expectGolden(`${width}x${height}`, pictures.join('\n'));
  });

  it.each(DESIGNED)(
    'a picture of %i x %i says all that matters of a payment, and that the box is offline or its link not encrypted',
    async (width, height) => {
      const stage = await stageOf(width, height);
      const says = (scene: Scene) =>
        pictureOf(scene, stage).flatMap((item) => (item.kind === 'text' ? [item.text] : []));
      for (const scene of Object.values(SCENES)) {
        if ('amount' in scene) expect(says(scene)).toContain(formatAmount(scene.amount));
        expect(says(scene).includes('Mất kết nối')).toBe(isOffline(scene));
        expect(says(scene).includes('Kết nối không mã hóa')).toBe(isPlain(scene));
      }
    },
  );

  it.each(SMALL)(
    'a picture of %i x %i says every amount of up to ten figures, and that the box is offline',
    async (width, height) => {
      const stage = await stageOf(width, height);
      for (const scene of Object.values(SCENES)) {
        const picture = pictureOf(scene, stage);
        const says = picture.flatMap((item) => (item.kind === 'text' ? [item.text] : []));
        if ('amount' in scene) expect(says).toContain(formatAmount(scene.amount));
        const amber = picture.some((item) => item.kind === 'rect' && item.color === 0xffb938);
        const words = says.some((text) => text === 'Mất kết nối' || text === 'Mất mạng');
        expect(amber || words, describePicture(picture)).toBe(isOffline(scene) || isPlain(scene));
      }
    },
  );

  it('a picture of 64 x 64 keeps the whole quiet zone where the code alone has it', async () => {
    const surface = { kind: 'pixels', width: 64, height: 64 } as const;
    for (let length = 20; length <= 230; length += 5) {
      const alone = fitQr(payloadOf(length), 64);
      const fit = fitOn(surface, payloadOf(length));
      if (!alone.ok || !fit.ok) throw new Error('no room');
      if (fit.qr.modulePixels === 1) expect(fit.qr.quietModules).toBe(alone.qr.quietModules);
    }
  });

  it.each([
    [64, 64, 220],
    [240, 240, 280],
  ])('of %i x %i that is all code marks its lower edge while the box is offline', async (width, height, length) => {
    const stage = await stageOf(width, height);
    const picture = (online: boolean) => pictureOf({ ...PAYMENT, qrCode: payloadOf(length), online }, stage);
    expect(picture(true).at(-1)?.kind).toBe('qr');
    const [code, edge] = picture(false).slice(-2);
    expect(edge).toMatchObject({ kind: 'rect', color: 0xffb938, box: { x: 0, width } });
    expect(edge && edge.box.y + edge.box.height).toBe(height);
    expect(code && edge && code.box.y + code.box.height).toBeLessThanOrEqual(edge?.box.y ?? 0);
  });
});

describe('the last payments', () => {
  const history = SCENES['history of five, offline'];
  const textsOf = (scene: Scene | undefined, stage: Stage) =>
    (scene ? pictureOf(scene, stage) : []).flatMap((item) => (item.kind === 'text' ? [item.text] : []));

  it.each(DESIGNED)('the last payments on %i x %i have each their time', async (width, height) => {
    const said = textsOf(history, await stageOf(width, height)).join(' ');
    const times = said.match(/\d\d:\d\d \d\d\/\d\d/g) ?? [];
    expect(times.length).toBe(said.match(/[\d.]+ ₫/g)?.length);
    expect(times.length).toBeGreaterThanOrEqual(Math.min(width, height) < 300 ? 4 : 5);
  });

  it.each(SMALL)('the last payments on %i x %i say the first amount, and no time', async (width, height) => {
    const said = textsOf(history, await stageOf(width, height)).join(' ');
    expect(said).toContain('1.234.567 ₫');
    expect(said).not.toContain(':');
  });

  it.each([
    [120, true],
    [30, true],
    [20, false],
  ])('in %i columns have all or none of their times', async (columns, halfBlocks) => {
    for (let rows = 2; rows < 24; rows += 1) {
      const renderer = await openRenderer({ kind: 'characters', columns, rows, halfBlocks }, source);
      const frame = history && renderer.render(history);
      const text = frame?.kind === 'characters' ? textPicture(frame) : '';
      const times = text.match(/\d\d:\d\d/g)?.length ?? 0;
      expect([0, text.match(/₫/g)?.length], text).toContain(times);
    }
  });
});

describe('AGT-5 a payment of less than its order asked for', () => {
  const found = { less: DUE['paid, something missing'], all: SCENES.paid, more: DUE['paid, too much'] };

  it.each([...DESIGNED, ...SMALL])(
    'a payment of less than its order asked for differs at a glance from a full one on %i x %i',
    async (width, height) => {
      const stage = await stageOf(width, height);
      const [less, all, more] = [found.less, found.all, found.more].map((scene) => {
        const items = scene ? pictureOf(scene, stage) : [];
        const [ground] = items.flatMap((it) => (it.kind === 'rect' ? [it.color] : []));
        return { ground, icons: items.flatMap((it) => (it.kind === 'icon' ? [it.name] : [])), items };
      });
      expect(less?.ground).not.toBe(all?.ground);
      expect(more?.ground).toBe(all?.ground);
      expect(less?.icons).not.toContain('tick');
      const texts = less?.items.flatMap((it) => (it.kind === 'text' ? [it] : [])) ?? [];
      const heightOf = (pattern: RegExp) => texts.find((it) => pattern.test(it.text))?.face.lineHeight ?? 0;
      expect(heightOf(/hiếu/)).toBeGreaterThan(0);
      expect(heightOf(/hiếu/)).toBeGreaterThanOrEqual(heightOf(/Đã nhận/));
    },
  );
});

describe('an order without its code', () => {
  it.each([...LOW, ...SMALL])(
    'an order without its code says amount and content on %i x %i before anything else, and no cut title',
    async (width, height) => {
      const scene = SCENES['too dense'];
      const texts = scene ? pictureOf(scene, await stageOf(width, height)) : [];
      const said = texts.flatMap((item) => (item.kind === 'text' ? [item.text] : [])).join(' ');
      expect(said).toContain('50.000 ₫');
      expect(said).toMatch(/Thanh toa/);
      const titled = /Không có QR|Màn hình quá nhỏ cho mã QR/.test(said);
      expect(titled, said).toBe(/Không|Màn hình/.test(said));
    },
  );
});

describe('a page of characters', () => {
  it.each([
    [80, 24, true],
    [60, 40, true],
    [40, 12, true],
    [20, 4, false],
    [20, 2, false],
    [16, 2, false],
  ])('of %i x %i is as agreed (half blocks: %s)', async (columns, rows, halfBlocks) => {
    const renderer = await openRenderer({ kind: 'characters', columns, rows, halfBlocks }, source);
    const pages = Object.entries(SCENES).map(([name, scene]) => {
      const frame = renderer.render(scene);
      return frame.kind === 'characters' ? `== ${name}\n${textPicture(frame)}` : '';
    });
    await expectGolden(`${columns}x${rows}-characters`, pages.join('\n'));
  });

  it.each([
    [20, 4],
    [20, 2],
    [16, 2],
  ])('of %i x %i begins with the amount of an order, and says that the box is offline', async (columns, rows) => {
    const renderer = await openRenderer({ kind: 'characters', columns, rows, halfBlocks: false }, source);
    for (const scene of Object.values(SCENES)) {
      const frame = renderer.render(scene);
      const text = frame.kind === 'characters' ? textPicture(frame) : '';
      if ('amount' in scene) expect(text).toMatch(new RegExp(`^${formatAmount(scene.amount).replace('₫', 'd')}`));
      // A payment that is shown again says first what it is.
      const isFull = scene.kind === 'repeat' && columns === 16;
      expect(/Mat (ket noi|mang)/.test(text)).toBe(isOffline(scene) && !isFull);
      expect(/[Kk]hong ma hoa/.test(text)).toBe(isPlain(scene));
    }
  });

  it('a page of characters has single drawable characters only and keeps its size, whatever the scene', async () => {
    const sizes = fc.record({
      kind: fc.constant('characters' as const),
      columns: fc.integer({ min: 1, max: 120 }),
      rows: fc.integer({ min: 1, max: 60 }),
      halfBlocks: fc.boolean(),
    });
    await fc.assert(
      fc.asyncProperty(anyScene, sizes, async (scene, surface) => {
        const frame = (await openRenderer(surface, source)).render(scene);
        if (frame.kind !== 'characters') throw new Error('not characters');
        expect(frame.columns).toBeLessThanOrEqual(surface.columns);
        expect(frame.rows).toBeLessThanOrEqual(surface.rows);
        expect(frame.cells.length).toBe(frame.columns * frame.rows);
        const odd = frame.cells.filter(({ char }) => char.length !== 1 || /\p{Cc}/u.test(char));
        expect(odd).toEqual([]);
        if (!surface.halfBlocks) expect(frame.cells.filter(({ char }) => char > '~')).toEqual([]);
      }),
      { numRuns: 300 },
    );
  });
});
