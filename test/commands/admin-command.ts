import type { TestGateway } from '../gateway/harness.ts';
import { payboxToEnd } from '../support/processes.ts';

export const STORE = { config: { registry: 'store' } };

/** `paybox admin` at this gateway: its exit code and output. */
export const at =
  ({ origin }: Pick<TestGateway, 'origin'>) =>
  (...args: string[]) =>
    payboxToEnd('admin', ...args, ...(args.includes('--gateway') ? [] : ['--gateway', origin]));
