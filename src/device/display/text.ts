import { qrTextOf, type Scene } from '../scene.ts';
import { pageOf, TIME_LEFT } from './words.ts';

/**
 * Returns the screen as plain lines, in Vietnamese with accents. The payload of a QR has its own line, unchanged except
 * for control characters. A blank screen has no lines.
 */
export function sceneText(scene: Scene): string {
  const page = pageOf(scene);
  const lines = [
    page.title || undefined,
    page.amount,
    page.due?.text,
    page.code,
    ...page.facts.map(({ label, value }) => `${label}: ${value}`),
    page.timeLeft && `${TIME_LEFT}: ${page.timeLeft}`,
    page.hint,
    page.badge?.text,
    page.mark,
    qrTextOf(scene)?.replaceAll(/\p{Cc}/gu, ''),
  ];
  return lines
    .filter((line) => line !== undefined)
    .map((line) => `${line}\n`)
    .join('');
}
