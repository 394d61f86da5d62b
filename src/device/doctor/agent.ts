import { access, constants } from 'node:fs/promises';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { z } from 'zod';
import { reasonOf, systemCodeOf } from '../../lib/errors.ts';
import { assertFile, readFileText } from '../../lib/files.ts';
import { askHttp, authorizationHeader, parseJson } from '../../lib/http-client.ts';
import type { AgentConfig } from '../agent/config.ts';
import { TRANSPORTS } from '../agent/transports/registry.ts';
import { qrFindings } from './display.ts';
import { type Finding, failed, well } from './findings.ts';

const ANSWER_TIMEOUT_MS = 3_000;
const ANSWER_BYTES_MAX = 1_000_000;
const SECRET = /^[A-Za-z0-9_-]{43}$/;

const runningStatus = z.object({
  terminalCode: z.string(),
  state: z.string(),
  online: z.boolean(),
  fault: z.object({ code: z.string(), reason: z.string() }).nullable(),
  enrolment: z.object({ code: z.string() }).nullable(),
  displays: z.array(
    z.object({ driver: z.string(), ok: z.boolean(), reason: z.string().nullable(), surface: z.string() }),
  ),
  journal: z.object({ ok: z.boolean(), reason: z.string().nullable(), unwritten: z.number() }),
  link: z.object({ reason: z.string().nullable() }),
  version: z.string(),
});

/** The status that a running agent reports. */
export type RunningAgent = z.infer<typeof runningStatus>;

/**
 * Returns the agent that runs for this configuration and answers at its pages for the same box; undefined if none does.
 */
export async function runningAgent({ http, box }: AgentConfig): Promise<RunningAgent | undefined> {
  const host = http.host.includes(':') ? `[${http.host}]` : http.host;
  try {
    const url = `http://${host}:${http.port}/status`;
    const limits = { timeoutMs: ANSWER_TIMEOUT_MS, bytesMax: ANSWER_BYTES_MAX };
    const { body } = await askHttp(url, { headers: authorizationHeader(http.token) }, limits);
    const status = runningStatus.parse(parseJson(body));
    return status.terminalCode === box.terminalCode ? status : undefined;
  } catch {
    return undefined;
  }
}

/** Findings from a running agent. It has the devices open, so they are not tested again. */
export async function agentFindings(agent: RunningAgent, { dataDir }: AgentConfig): Promise<Finding[]> {
  const findings = [howItIs(agent), journalOf(agent.journal)];
  for (const { driver, ok, reason, surface } of agent.displays) {
    const check = `display ${driver}`;
    const fix = 'check its cable and its part of the configuration';
    findings.push(
      ok ? well(check, `the agent draws on it, ${surface}`) : failed(check, new Error(reason ?? 'not ok'), fix),
    );
    const [, width, height] = /^(\d+)×(\d+) pixels$/.exec(surface) ?? [];
    if (width === undefined || height === undefined) continue;
    findings.push(...(await qrFindings({ kind: 'pixels', width: Number(width), height: Number(height) }, dataDir)));
  }
  return findings;
}

function howItIs({ state, online, fault, link, version, enrolment }: RunningAgent): Finding {
  const check = 'agent';
  const offline = enrolment === null ? (link.reason ?? 'no reason is known') : 'it waits to be enrolled';
  const found = `version ${version}, ${state}, ${online ? 'online' : `offline: ${offline}`}`;
  if (fault !== null)
    return failed(check, new Error(`${found}; ${fault.code}: ${fault.reason}`), 'see the checks below');
  if (online) return well(check, found);
  const fix = enrolment === null ? 'see gateway and login below' : 'accept it: paybox enrol --box … --code …';
  return { check, result: 'warning', found, fix };
}

const JOURNAL_FIX =
  'check the disk with dmesg and df; the agent renames a journal that it cannot read, and begins a new one';

function journalOf({ ok, reason, unwritten }: RunningAgent['journal']): Finding {
  if (ok && unwritten === 0) return well('journal', 'the agent writes it');
  return failed('journal', new Error(`${reason ?? 'not ok'}, ${unwritten} entries wait`), JOURNAL_FIX);
}

/** Checks the journal of a box that does not run, without changing it. */
export async function journalFinding({ dataDir }: AgentConfig, file: string): Promise<Finding> {
  const check = 'journal';
  const path = join(dataDir, file);
  try {
    await access(path, constants.R_OK);
  } catch (error) {
    if (systemCodeOf(error) === 'ENOENT') return well(check, 'there is none yet');
    return failed(check, error, 'run this as the user of the agent, or as root');
  }
  try {
    for (const end of ['', '-wal', '-shm']) assertFile(`${path}${end}`);
    const db = new DatabaseSync(path, { readOnly: true });
    try {
      const [row] = db.prepare('PRAGMA quick_check(1)').all();
      const answer = String(Object.values(row ?? {})[0]);
      return answer === 'ok' ? well(check, `${path} is undamaged`) : failed(check, new Error(answer), JOURNAL_FIX);
    } finally {
      db.close();
    }
  } catch (error) {
    return failed(check, new Error(`${path}: ${reasonOf(error)}`), JOURNAL_FIX);
  }
}

/** Returns the box's secret, from its configuration or enrolment, with a finding about it. */
export async function secretOf({
  box,
  link,
  dataDir,
}: AgentConfig): Promise<{ secret: string | undefined; finding: Finding }> {
  const check = 'secret';
  if (TRANSPORTS.get(link.transport)?.ownLogin !== undefined)
    return { secret: '', finding: well(check, 'none is needed: the box logs in as link says') };
  if (box.secret !== undefined) return { secret: box.secret, finding: well(check, 'is in the configuration') };
  const path = join(dataDir, 'secret');
  try {
    const secret = (await readFileText(path)).trim();
    if (SECRET.test(secret)) return { secret, finding: well(check, 'agreed on at enrolment') };
    const fix = `remove ${path}: the box then enrols again`;
    return { secret: undefined, finding: failed(check, new Error(`${path} contains no secret`), fix) };
  } catch (error) {
    if (systemCodeOf(error) !== 'ENOENT') {
      const fix = 'run this as the user of the agent, or as root';
      return { secret: undefined, finding: failed(check, error, fix) };
    }
    const found = 'none: the box is not enrolled';
    const fix = 'start the agent, and accept the code on its screen: paybox enrol --box … --code …';
    return { secret: undefined, finding: { check, result: 'warning', found, fix } };
  }
}
