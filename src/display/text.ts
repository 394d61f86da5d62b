import { qrTextOf, type Scene } from '../scene.ts';
import { pageOf, TIME_LEFT } from './words.ts';

/**
 * The screen in plain lines, Vietnamese with its accents. The content of a QR stands on a line of its own, exactly
 * as it is coded but for control characters, which no line may hold. A blank screen has no lines.
 */
export function sceneText(scene: Scene): string {
  const page = pageOf(scene);
  const lines = [
    page.title || undefined,
    page.amount,
    page.code,
    ...page.facts.map(({ label, value }) => `${label}: ${value}`),
    page.timeLeft && `${TIME_LEFT}: ${page.timeLeft}`,
    page.hint,
    page.badge?.text,
    qrTextOf(scene)?.replaceAll(/\p{Cc}/gu, ''),
  ];
  return lines
    .filter((line) => line !== undefined)
    .map((line) => `${line}\n`)
    .join('');
}
