import type { Scene } from '../scene.ts';
import { OFFLINE, pageOf, TIME_LEFT } from './words.ts';

/**
 * What the screen says, in plain lines, Vietnamese with its accents. The QR payload stands on a line of its own, exactly
 * as it is coded but for control characters, which no line may hold. A blank screen has no lines.
 */
export function sceneText(scene: Scene): string {
  const page = pageOf(scene);
  const lines = [
    page.title || undefined,
    page.amount,
    ...page.facts.map(({ label, value }) => `${label}: ${value}`),
    page.timeLeft && `${TIME_LEFT}: ${page.timeLeft}`,
    page.hint,
    page.offline ? OFFLINE : undefined,
    scene.kind === 'payment' ? scene.qrCode.replaceAll(/\p{Cc}/gu, '') : undefined,
  ];
  return lines
    .filter((line) => line !== undefined)
    .map((line) => `${line}\n`)
    .join('');
}
