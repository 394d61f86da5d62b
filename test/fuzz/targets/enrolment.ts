import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { EnrolmentClient } from '../../../src/device/agent/enrolment/client.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { PayboxError } from '../../../src/lib/errors.ts';
import { agreementKeyOf, boxProof, ENROLMENTS_PATH, gatewayProof } from '../../../src/protocol/enrolment.ts';
import { UNENROLLED } from '../corpus.ts';
import { holdRefusal, openGateway, unchangedBy } from '../gateway.ts';
import { requestOf } from '../http.ts';
import { mutatedJson } from '../json.ts';
import { hold, holdNamed, type Target } from '../target.ts';

const CODE = '7K2M-Q0XA-94TZ';
const [boxKey, gatewayKey] = [1, 2].map(
  (byte) => agreementKeyOf(Buffer.alloc(32, byte).toString('base64url')).publicKey,
);
const agreement = { ...UNENROLLED, boxKey: boxKey ?? '', gatewayKey: gatewayKey ?? '' };
const asJson = (...values: object[]) => values.map((value) => Buffer.from(JSON.stringify(value)));

const REQUESTS = asJson({ ...UNENROLLED, publicKey: boxKey, proof: boxProof(CODE, agreement) });
const STATES = asJson(
  { state: 'pending' },
  { state: 'rejected' },
  { state: 'accepted', how: 'code', publicKey: gatewayKey, proof: gatewayProof(CODE, agreement) },
);

/** What anybody may ask of a gateway: refused by name and without a trace, or taken as what it is. */
const requests: Target['open'] = async (world) => {
  const gateway = await openGateway(world);
  const headers = { 'content-type': 'application/json' };
  return unchangedBy(gateway, async (body) => {
    const answer = await gateway.send(requestOf(`POST ${ENROLMENTS_PATH}`, headers, body));
    if (answer.status !== 201) {
      holdRefusal(answer);
      return false;
    }
    const { id } = JSON.parse(answer.body) as { id?: unknown };
    hold(typeof id === 'string' && id.length === 36, () => `taken with ${answer.body}`);
    const state = await gateway.send(requestOf(`GET ${ENROLMENTS_PATH}/${id}`, {}, Buffer.alloc(0)));
    hold(state.body === '{"state":"pending"}', () => `a stranger is ${state.body}`);
    return true;
  });
};

/** What anybody may answer a box: one of the three states, or a failure with a name. */
const answers: Target['open'] = async (world) => {
  let next: Buffer = Buffer.alloc(0);
  const server = createServer((_request, response) => response.end(next)).listen(0, '127.0.0.1');
  await once(server, 'listening');
  world.onEnd(() => server.close());
  const { port } = server.address() as AddressInfo;
  const client = new EnrolmentClient({ url: `http://127.0.0.1:${port}` }, systemClock);
  return {
    feed: async (input) => {
      next = input;
      try {
        const state = await client.state('x', new AbortController().signal);
        hold(
          ['pending', 'rejected', 'accepted'].includes(String(state?.state)),
          () => `a state ${JSON.stringify(state)}`,
        );
        return true;
      } catch (error) {
        hold(error instanceof PayboxError, () => `not a PayboxError: ${String(error)}`);
        holdNamed(error instanceof PayboxError ? error.message : '');
        return false;
      }
    },
  };
};

export const ENROLMENT: Target[] = [
  { name: 'enrolment request', inputs: 1_000, make: (chance) => mutatedJson(REQUESTS, chance), open: requests },
  { name: 'enrolment answer', inputs: 500, make: (chance) => mutatedJson(STATES, chance), open: answers },
];
