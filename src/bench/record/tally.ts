import { PATHS } from '../../protocol/http-api.ts';
import { isCall, ownersDeed } from './calls.ts';
import type { Recording } from './recording.ts';
import type { Heard } from './wire-at.ts';

/** What a recording holds so far, in one line. */
export function talliedOf({ heard, sights }: Pick<Recording, 'heard' | 'sights'>): string {
  const count = (is: (it: Heard) => boolean) => heard.filter(is).length;
  const ownersDid = (what: string) => count((it) => it.kind === 'call' && ownersDeed(it)?.what === what);
  const ended = (how: string) =>
    count((it) => it.kind === 'message' && it.body.type === 'ended' && it.body.how === how);
  const counts: [number, string, string][] = [
    [count((it) => isCall(it, PATHS.sendQr)), 'push', 'pushes'],
    [count((it) => isCall(it, PATHS.testCallback)) + ownersDid('pay'), 'payment', 'payments'],
    [ownersDid('cancel'), 'cancellation', 'cancellations'],
    [ended('dismissed'), 'key', 'keys'],
    [count((it) => it.kind === 'callback'), 'callback', 'callbacks'],
    [sights.length, 'screen', 'screens'],
  ];
  const said = counts.filter(([many]) => many > 0).map(([many, one, more]) => `${many} ${many === 1 ? one : more}`);
  return said.length === 0 ? 'nothing yet' : said.join(', ');
}
