import type { PixelSurface } from '../contract.ts';
import type { Qr } from '../qr.ts';
import type { Badge, Page } from '../words.ts';
import { measure } from './fonts/faces.ts';
import type { Box, Item } from './items.ts';
import { type Arrangement, EDGE_PX } from './room.ts';
import { WARNING } from './theme.ts';
import { isSmall, type Stage } from './typography.ts';

/*
 * This file lays out the lower edge of a picture: the mark of a sandbox, and the colour that replaces words without
 * room.
 */

/** Returns the height of the strip for the mark of a sandbox: one line. */
export function markHeight({ surface, type }: Stage): number {
  return (type.mark[0]?.lineHeight ?? 0) + (isSmall(surface) ? 1 : 0);
}

/** Returns `area` without its lower edge, where a sandbox shows its mark. */
export function restOf({ mark }: Page, area: Box, stage: Stage): Box {
  if (mark === undefined) return area;
  const height = hasRoomForMark(mark, area, stage) ? markHeight(stage) : Math.min(EDGE_PX, area.height);
  return { ...area, height: area.height - height };
}

function hasRoomForMark(mark: string, area: Box, stage: Stage): boolean {
  const [face] = stage.type.mark;
  return face !== undefined && area.height >= markHeight(stage) && area.width >= measure(mark, face);
}

/**
 * Returns the texts, with the mark of a sandbox at the lower edge of `area`. If the badge or the mark does not
 * fit, the edge of the screen has its colour instead. On small panels the mark has no ground of its own, because light needs current and
 * blooms.
 */
export function withEdge(texts: readonly Item[], page: Page, area: Box, stage: Stage): Item[] {
  const { mark, badge } = page;
  const said = ({ text }: Item & { kind: 'text' }) => text === badge?.text || text === badge?.short;
  const isSaid = badge === undefined || texts.some((item) => item.kind === 'text' && said(item));
  if (mark !== undefined && hasRoomForMark(mark, area, stage)) {
    return [...texts, ...markAt(mark, isSaid ? undefined : badge, area, stage)];
  }
  const height = Math.min(area.height, EDGE_PX);
  if ((isSaid && mark === undefined) || height <= 0) return [...texts];
  return [...texts, edgeOf(area, height)];
}

function markAt(mark: string, unsaid: Badge | undefined, area: Box, stage: Stage): Item[] {
  const [face] = stage.type.mark;
  if (face === undefined) return [];
  const small = isSmall(stage.surface);
  const long = unsaid === undefined || small ? mark : `${mark} • ${unsaid.short}`;
  const text = measure(long, face) <= area.width ? long : mark;
  const width = measure(text, face);
  const x = area.x + Math.floor((area.width - width) / 2);
  const box = { x, y: area.y + area.height - face.lineHeight, width, height: face.lineHeight };
  const letters = (ink: number): Item => ({ kind: 'text', box, text, face, ink });
  if (small && unsaid === undefined) return [letters(WARNING.paper)];
  return [edgeOf(area, markHeight(stage)), letters(WARNING.ink)];
}

function edgeOf(area: Box, height: number): Item {
  return { kind: 'rect', box: { ...area, y: area.y + area.height - height, height }, radius: 0, color: WARNING.paper };
}

/** Returns the place of the QR. Alone on the screen it leaves the strip for a mark free, if it can. */
export function groundFor(arrangement: Arrangement, { mark }: Page, qr: Qr, stage: Stage): PixelSurface {
  const { surface } = stage;
  const height = surface.height - markHeight(stage);
  return mark === undefined || arrangement !== 'alone' || qr.side > height ? surface : { ...surface, height };
}
