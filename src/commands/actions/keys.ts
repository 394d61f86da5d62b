import { PayboxError } from '../../lib/errors.ts';
import { explained } from '../../protocol/codes.ts';
import { AdminClient, type AdminOptions } from '../shared/admin-client.ts';
import { say } from '../shared/output.ts';

/** Runs `paybox keys`: prints the thumbprint (RFC 7638) of the gateway's signing key; of a new key with `--rotate`. */
export async function keys(options: AdminOptions & { rotate?: boolean; json?: boolean }): Promise<void> {
  const gateway = await AdminClient.open(options);
  if (options.rotate === true) {
    const problem = await gateway.post('keys/rotate', {});
    if (problem !== undefined) {
      const fix = 'look into the log of the gateway';
      throw new PayboxError(problem, `the key was not rotated: ${explained(problem)}`, { severity: 'fatal', fix });
    }
  }
  const { kid } = await gateway.get<{ kid: string }>('keys');
  say(options.json === true ? JSON.stringify({ kid }) : `the gateway signs with ${kid}`);
}
