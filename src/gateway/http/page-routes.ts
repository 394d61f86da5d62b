import { readFile } from 'node:fs/promises';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { PAGE_POLICY } from '../../lib/http-server.ts';
import { openApi } from '../../protocol/openapi.ts';
import type { Logins } from '../access/logins.ts';
import { answerRefusal, answersOnceMade } from '../access/requests.ts';
import type { BacklogReader } from '../callbacks/backlog.ts';
import type { GatewayConfig } from '../config.ts';
import type { Context } from '../context.ts';
import type { Health } from '../health.ts';
import type { Metrics } from '../metrics.ts';
import { requireAdminBeyondHere } from './admin.ts';

const OWN = new URL('../pages/', import.meta.url);
const SWAGGER = new URL('.', import.meta.resolve('swagger-ui-dist/package.json'));

/** Files of the pages, by path. */
const ASSETS: Record<string, URL> = {
  '/console.css': new URL('console.css', OWN),
  '/console.js': new URL('console.js', OWN),
  '/elements.js': new URL('elements.js', OWN),
  '/gateway.js': new URL('gateway.js', OWN),
  '/registry.js': new URL('registry.js', OWN),
  '/registry-forms.js': new URL('registry-forms.js', OWN),
  '/begin.js': new URL('begin.js', OWN),
  '/enrol.js': new URL('enrol.js', OWN),
  '/cluster.js': new URL('cluster.js', OWN),
  '/calls.js': new URL('calls.js', OWN),
  '/credits.js': new URL('credits.js', OWN),
  '/sources.js': new URL('sources.js', OWN),
  '/faults.js': new URL('faults.js', OWN),
  '/resend.js': new URL('resend.js', OWN),
  '/sell.js': new URL('sell.js', OWN),
  '/order-calls.js': new URL('order-calls.js', OWN),
  '/md5.js': new URL('md5.js', OWN),
  '/welcome.css': new URL('welcome.css', OWN),
  '/welcome.js': new URL('welcome.js', OWN),
  '/welcome-parts.js': new URL('welcome-parts.js', OWN),
  '/welcome-words.js': new URL('welcome-words.js', OWN),
  '/docs/docs.js': new URL('docs.js', OWN),
  '/docs/swagger-ui.css': new URL('swagger-ui.css', SWAGGER),
  '/docs/swagger-ui-bundle.js': new URL('swagger-ui-bundle.js', SWAGGER),
};
const QR_SVG_WIDTH_PX = 480;

export interface PageRoutesDeps extends Pick<Context, 'store' | 'log'> {
  metrics: Metrics;
  health: Health;
  backlog: BacklogReader;
  logins: Logins;
  config: Pick<GatewayConfig, 'basePath' | 'mode' | 'adminToken'>;
}

/** Console, API page, health and metrics. */
export async function pageRoutes(scope: FastifyInstance, deps: PageRoutesDeps) {
  const { store, metrics, health, backlog, log, config } = deps;
  const page = (name: string) => readFile(new URL(name, OWN), 'utf8');
  const [consolePage, welcomePage, registryPage, docsPage] = await Promise.all([
    page('console.html'),
    page('welcome.html'),
    page('registry.html'),
    page('docs.html'),
  ]);
  const html = (reply: FastifyReply, text: string) =>
    reply.type('text/html; charset=utf-8').header('content-security-policy', PAGE_POLICY).send(text);

  scope.get('/', (_request, reply) => html(reply, consolePage));
  scope.get('/welcome', (_request, reply) => html(reply, welcomePage));
  for (const path of ['/docs', '/docs/admin']) scope.get(path, (_request, reply) => html(reply, docsPage));
  scope.get('/registry', (_request, reply) => html(reply, registryPage));
  scope.get(
    '/openapi.json',
    answersOnceMade(() => openApi(config.basePath === '' ? '/' : config.basePath)),
  );
  // For a proxy in front, as at a member of a cluster: it answers, whatever its store and its broker do.
  scope.get('/livez', async () => ({ status: 'ok' }));
  scope.get('/healthz', async (_request, reply) => {
    const reason = await health.problem();
    if (reason !== undefined) return reply.code(503).send({ status: 'failed', reason });
    // Waiting callbacks are shown, but do not make the gateway unhealthy.
    const pending = await backlog();
    if (pending === undefined) return reply.code(503).send({ status: 'failed', reason: 'the store does not answer' });
    const { partners: _partners, ...callbacks } = pending;
    return { status: 'ok', mode: config.mode, callbacks };
  });
  scope.register(async (counts) => {
    // How much money a shop gets is nobody's business.
    if (config.mode === 'live') requireAdminBeyondHere(counts, { ...deps, adminToken: config.adminToken });
    counts.get('/metrics', async (_request, reply) => reply.type(metrics.contentType).send(await metrics.text()));
  });

  for (const [path, file] of Object.entries(ASSETS)) {
    const type = path.endsWith('.css') ? 'text/css; charset=utf-8' : 'text/javascript; charset=utf-8';
    // Read once, so that many slow readers share one copy.
    let content: Promise<Buffer> | undefined;
    scope.get(path, async (_request, reply) => {
      content ??= readFile(file);
      return reply.type(type).send(await content);
    });
  }

  scope.get<{ Params: { ref: string } }>('/qr/:ref', async (request, reply) => {
    const qrCode = await store.qrCodes.find(request.params.ref);
    if (qrCode === undefined) {
      return answerRefusal(request, reply, log, { code: 'E96', reason: 'no QR has this reference' }, 404);
    }
    const { toString: draw } = await import('qrcode');
    const svg = await draw(qrCode, { type: 'svg', margin: 4, width: QR_SVG_WIDTH_PX, errorCorrectionLevel: 'M' });
    // Pages of partners, which are on other sites, show the picture.
    reply.header('cross-origin-resource-policy', 'cross-origin').header('cache-control', 'max-age=3600');
    return reply.type('image/svg+xml').send(svg);
  });
}
