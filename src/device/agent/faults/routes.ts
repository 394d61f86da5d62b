import { PayboxError, reasonOf } from '../../../lib/errors.ts';
import { suggestion } from '../../../lib/suggestion.ts';
import { issuesOf } from '../../../protocol/codec.ts';
import { faultKind, faultOrder } from '../../../protocol/faults.ts';
import { type Answer, json, nothing, plain } from '../pages/answer.ts';
import { BOX_FAULTS, type BoxFaults } from './box-faults.ts';
import { FAULTS_PATH } from './none.ts';

const HOW = `POST ${FAULTS_PATH}/{name}?seconds=&times=&chance=&seed=, all optional`;
const NUMBER = /^\d{1,12}(\.\d{1,6})?$/;

const how = faultOrder.pick({ seconds: true, times: true, chance: true, seed: true });

/** Answers a request for `path`, which begins with FAULTS_PATH (PROTOCOL.md, clause FLT). */
export function faultsAnswer(
  { method, path, query }: { method: string; path: string; query: string },
  faults: BoxFaults,
): Answer {
  if (path === FAULTS_PATH) {
    if (method === 'GET') return json(200, { faults: BOX_FAULTS.map(described), standing: faults.listed() });
    if (method !== 'DELETE') return notAllowed('GET, HEAD, DELETE');
    faults.endAll();
    return nothing();
  }
  const name = path.slice(FAULTS_PATH.length + 1);
  if (method === 'POST') return ordered(name, query, faults);
  if (method !== 'DELETE') return notAllowed('POST, DELETE');
  return faults.end(name)
    ? nothing()
    : plain(404, `no fault ${name} is active: GET ${FAULTS_PATH} lists the active ones`);
}

function ordered(name: string, query: string, faults: BoxFaults): Answer {
  const fault = BOX_FAULTS.find((it) => it === name);
  if (fault === undefined)
    return plain(404, `${name} is no fault of a box: expected ${BOX_FAULTS.join(', ')}${suggestion(name, BOX_FAULTS)}`);
  const given = [...new URLSearchParams(query)].map(([key, text]) => [key, NUMBER.test(text) ? Number(text) : text]);
  const parsed = how.safeParse(Object.fromEntries(given));
  if (!parsed.success) return plain(400, `${issuesOf(parsed.error)}: expected ${HOW}`);
  if (faultKind(fault).timing === 'state' && parsed.data.times !== undefined) {
    return plain(400, `times: ${fault} lasts for a time and is not counted: give seconds`);
  }
  try {
    return json(201, faults.order({ fault, ...parsed.data }));
  } catch (error) {
    if (!(error instanceof PayboxError)) throw error;
    return plain(409, `${reasonOf(error)}: end some with DELETE ${FAULTS_PATH}`);
  }
}

function described(name: (typeof BOX_FAULTS)[number]) {
  const { place, about } = faultKind(name);
  return { name, place, about };
}

function notAllowed(allow: string): Answer {
  return { ...plain(405, `only ${allow}; a fault is ordered by ${HOW}`), headers: { allow } };
}
