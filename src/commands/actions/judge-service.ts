import { join } from 'node:path';
import { realTime } from '../../bench/engine/test-time.ts';
import { startListener } from '../../bench/judges/service/callback-listener.ts';
import { SERVICE_CHECKS, SERVICE_NOT_JUDGED } from '../../bench/judges/service/checks/all.ts';
import { openEmulatedService, uniqueOrders } from '../../bench/judges/service/emulated-service.ts';
import { type ServiceOptionsGiven, serviceOptionsOf } from '../../bench/judges/service/options.ts';
import { ServiceSubject } from '../../bench/judges/service/subject.ts';
import { type IsWanted, type JudgeTarget, judgeTarget } from '../../bench/judges/suite.ts';
import { systemClock } from '../../lib/clock.ts';
import { seededRandom, systemRandom } from '../../lib/random.ts';
import { fileLog } from '../shared/daemon.ts';
import { remark } from '../shared/output.ts';
import { boxTokenOf, secretFrom } from '../shared/secrets.ts';
import { emulatedStarter } from './bench-emulated.ts';
import { type RunOptions, runJudge } from './judge.ts';

interface ServiceJudgeOptions extends RunOptions, ServiceOptionsGiven {
  boxTokenFile?: string;
}

const CHECKS = { checks: SERVICE_CHECKS, notJudged: SERVICE_NOT_JUDGED };

/** Runs `paybox judge service`. */
export async function judgeService(options: ServiceJudgeOptions): Promise<void> {
  await runJudge('service', options, (isWanted, seed) => [
    options.service === undefined ? emulatedService(options, isWanted, seed) : externalService(options, isWanted),
  ]);
}

/** Runs our gateway in this process, in virtual time. */
function emulatedService({ report }: ServiceJudgeOptions, isWanted: IsWanted, seed: number): JudgeTarget {
  return judgeTarget(isWanted, {
    ...CHECKS,
    target: 'our own gateway',
    open: async () => {
      const random = seededRandom(seed);
      const starter = emulatedStarter({ random, log: fileLog(report && join(report, 'bench.log')) });
      const { subject, close } = await openEmulatedService(starter, random);
      return opened(subject, close);
    },
  });
}

function externalService(given: ServiceJudgeOptions, isWanted: IsWanted): JudgeTarget {
  const { listen, ...options } = serviceOptionsOf(given, {
    secretFrom,
    boxToken: given.boxPage === undefined ? undefined : boxTokenOf(given),
  });
  return judgeTarget(isWanted, {
    ...CHECKS,
    target: options.access.baseUrl,
    open: async () => {
      const listener = listen && (await startListener(listen, systemClock, options.callbackAuth));
      const subject = new ServiceSubject({ ...options, ...uniqueOrders(systemRandom), time: realTime, listener });
      if (listener !== undefined) {
        remark(`The partner's endpoint is ${listener.url}, its token endpoint ${listener.tokenUrl}`);
      }
      return opened(subject, async () => listener?.close());
    },
  });
}

function opened(subject: ServiceSubject, close: () => Promise<void>) {
  const { time, redactor } = subject;
  return { subject, time, lacks: subject.lacks.bind(subject), redact: (text: string) => redactor.text(text), close };
}
