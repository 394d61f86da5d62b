import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { formIn } from '../../lib/bodies.ts';
import { reasonOf } from '../../lib/errors.ts';
import type { Logger } from '../../lib/log.ts';
import { takeBytes } from '../../lib/request-body.ts';
import { REASON_HEADER, WARNING_HEADER } from '../../protocol/http-api.ts';
import { addressOf } from '../access/carried.ts';
import { headerText, logRefusal, pathOf } from '../access/requests.ts';
import type { Sources } from '../money/open-sources.ts';
import type { ReceivedCredit } from '../money/receive-credits.ts';
import { refused } from '../money/sources/fields.ts';
import type { Heard, HeardForm, Source } from '../money/sources/source.ts';
import type { OpenGateway } from '../stages/open-gateway.ts';
import { logCalls, NOTES_SEPARATOR } from './traffic-routes.ts';

type Hook = FastifyRequest<{ Params: { name: string; '*'?: string } }>;
type Refused = Pick<Extract<Heard, { kind: 'refused' }>, 'status' | 'reason' | 'body'>;

const TOO_MANY = 429;
const PROVED_BY_SOURCE = { config: { access: 'own' } } as const;
/** Matches a media type (RFC 9110, section 8.3.1). It does not check the parameters. */
const MEDIA_TYPE = /^[\w!#$%&'*+.^`|~-]+\/[\w!#$%&'*+.^`|~-]+[ \t]*(?:;|$)/;
/** The property of a request that is true if its proof of origin was right. */
const IS_PROVED = 'isProved';

/**
 * Registers `POST /hooks/{name}` and the paths below it, where sources report money (PROTOCOL.md, clauses SRC-1 to
 * SRC-5).
 */
export function hookRoutes(scope: FastifyInstance, { world, stored, money }: OpenGateway): void {
  const { log } = world;
  const { logins } = stored;
  const { sources, metrics, receiveCredit } = money;
  const { catchUp } = sources;
  scope.decorateRequest(IS_PROVED, false);
  logCalls(scope, '', world, (request, status) => callerOf(request as Hook, status, sources));
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('*', takeBytes);
  // The server would refuse a malformed type, and the money would wait for catch-up (PROTOCOL.md, clause SRC-1).
  scope.addHook('onRequest', async ({ headers }) => {
    if (!MEDIA_TYPE.test(headers['content-type'] ?? '')) delete headers['content-type'];
  });
  scope.setErrorHandler((error, request, reply) => {
    const status = statusOf(error);
    if (status !== 503) return refuse(request, reply, { status, reason: reasonOf(error), body: failed('E46') });
    log.error('request-failed', { path: pathOf(request), code: 'E05', reason: reasonOf(error) });
    return reply.code(status).send(failed('E05'));
  });

  const refuse = refuser(log);
  const answer = async (request: FastifyRequest, reply: FastifyReply) => {
    const { name, '*': below } = (request as Hook).params;
    const source = sources.find(name);
    if (source === undefined) {
      return refuse(request, reply, { status: 404, reason: 'no source has this name', body: failed('E46') });
    }
    // The provider repeats its report later: no money is lost while a source is disabled.
    if (source === 'disabled') {
      return refuse(request, reply, { status: 503, reason: 'the source is disabled', body: failed('E05') });
    }
    const path = below === undefined || below === '' ? '' : `/${below}`.replace(/\/$/, '');
    const heard = await readForm(hear(logins, source, path, request, reply), request);
    if (heard.kind === 'answered') return reply.code(heard.status).header('cache-control', 'no-store').send(heard.body);
    if (heard.kind === 'told') return told(source, heard, reply);
    metrics.heard(name, 'refused');
    return refuse(request, reply, heard);
  };
  /**
   * The gateway stores all credits, then answers, then informs boxes. A source must not wait for boxes, nor repeat what
   * is stored.
   */
  const told = async (source: Source, { credits, ignored }: Extract<Heard, { kind: 'told' }>, reply: FastifyReply) => {
    catchUp.told(source.name);
    const received: ReceivedCredit[] = [];
    const report = () => {
      for (const it of received) it.report();
    };
    try {
      for (const credit of credits) received.push(await receiveCredit(source.name, credit, false));
    } catch (error) {
      report();
      catchUp.lost(source.name);
      throw new StoreFailed(error);
    }
    const results = received.map(({ result }) => result);
    for (const result of results) metrics.heard(source.name, result);
    for (const why of ignored) {
      metrics.heard(source.name, 'ignored');
      log.info('credit-ignored', { source: source.name, reason: why });
    }
    const notes = [...ignored, ...results.filter((it) => it !== 'paid' && it !== 'unmatched')];
    if (notes.length > 0) void reply.header(WARNING_HEADER, headerText(notes.join(NOTES_SEPARATOR)));
    void reply.send(source.success);
    report();
    return reply;
  };
  for (const url of ['/:name', '/:name/*']) scope.post(url, PROVED_BY_SOURCE, answer);
}

/**
 * Decodes a request. Beyond the limit of wrong proofs the gateway refuses a proof that can be guessed without reading
 * it.
 */
function hear(
  logins: OpenGateway['stored']['logins'],
  source: Source,
  path: string,
  request: FastifyRequest,
  reply: FastifyReply,
): Heard | HeardForm {
  const { headers, body, raw } = request;
  const isGuessable = source.isGuessable(path);
  const claim = { kind: 'hook', username: source.name, isStrong: !isGuessable } as const;
  const limits = logins.begin(claim, addressOf({ raw }));
  const refusedByLimit = (): Heard => {
    void reply.header('retry-after', String(Math.ceil(limits.waitMs / 1000)));
    return { kind: 'refused', status: TOO_MANY, reason: 'too many wrong proofs', body: source.limited };
  };
  if (limits.waitMs > 0 && isGuessable) return refusedByLimit();
  const heard = source.hear({ path, headers, body: Buffer.isBuffer(body) ? body : Buffer.alloc(0) });
  const isWrong = heard.kind === 'refused' && (heard.status === 401 || heard.isUnproved === true);
  if (isWrong && limits.waitMs > 0) return refusedByLimit();
  request.setDecorator(IS_PROVED, !isWrong);
  if (isWrong) limits.failed();
  else if (heard.kind !== 'refused') limits.succeeded();
  return heard;
}

/** Reads the form of a request whose proof is right. */
async function readForm(heard: Heard | HeardForm, { headers, body }: FastifyRequest): Promise<Heard> {
  if (heard.kind !== 'form') return heard;
  try {
    return heard.heardIn(await formIn(new Uint8Array(body as Buffer), headers));
  } catch (error) {
    return refused(400, reasonOf(error));
  }
}

/**
 * Returns under which name the traffic log lists the call. Wrong proofs and guessed names must not push other calls out
 * of it.
 */
function callerOf(request: Hook, status: number, sources: Sources) {
  const { name } = request.params;
  if (status === TOO_MANY || sources.find(name) === undefined) return undefined;
  return { by: name, isProved: request.getDecorator<boolean>(IS_PROVED) };
}

function refuser(log: Logger) {
  return (request: FastifyRequest, reply: FastifyReply, { status, reason, body }: Refused) => {
    logRefusal(request, log, { code: [401, TOO_MANY].includes(status) ? 'E74' : 'E46', reason }, status);
    return reply.code(status).header(REASON_HEADER, headerText(reason)).send(body);
  };
}

/** The store has stored nothing: the provider must repeat its report. */
class StoreFailed extends Error {
  readonly statusCode = 503;
  constructor(cause: unknown) {
    super(reasonOf(cause), { cause });
  }
}

function statusOf(error: unknown): number {
  const status = error instanceof Error && 'statusCode' in error ? Number(error.statusCode) : 503;
  return status >= 400 && status < 500 ? status : 503;
}

function failed(message: 'E46' | 'E05'): object {
  return { success: false, message };
}
