import { readFile } from 'node:fs/promises';
import type { FastifyInstance, FastifyReply } from 'fastify';
import { PAGE_POLICY } from '../../lib/http-server.ts';
import { answerRefusal } from '../access/requests.ts';
import type { World } from '../common/world.ts';
import { formsOf } from '../registry/inputs.ts';
import { TABLES } from '../registry/resources.ts';
import type { OpenGateway } from '../stages/open-gateway.ts';
import { OWN_PAGES, PAGE_FILES } from './page-files.ts';

const QR_SVG_WIDTH_PX = 480;
const SCRIPT = 'text/javascript; charset=utf-8';
/** Anybody may call these routes. */
const OPEN = { config: { access: 'anybody' } } as const;

/** Returns what this gateway sees of those that share its database. Undefined at a gateway alone. */
function clusterView({ config, place }: World) {
  const gateways = place.seen()?.map(({ run: _run, ...it }) => it);
  return gateways && { cluster: { name: config.cluster?.name, doors: place.lanes.doors(), gateways } };
}

/** Registers console, API page, health and metrics. */
export async function pageRoutes(scope: FastifyInstance, { world, stored, money, health }: OpenGateway) {
  const { log, config } = world;
  const { store } = stored;
  const { metrics, cachedBacklog: backlog } = money;
  const page = (name: string) => readFile(new URL(name, OWN_PAGES), 'utf8');
  const [consolePage, welcomePage, registryPage, docsPage] = await Promise.all([
    page('console.html'),
    page('welcome.html'),
    page('registry.html'),
    page('docs.html'),
  ]);
  const html = (reply: FastifyReply, text: string) =>
    reply.type('text/html; charset=utf-8').header('content-security-policy', PAGE_POLICY).send(text);

  scope.get('/', OPEN, (_request, reply) => html(reply, consolePage));
  scope.get('/welcome', OPEN, (_request, reply) => html(reply, welcomePage));
  for (const path of ['/docs', '/docs/admin']) scope.get(path, OPEN, (_request, reply) => html(reply, docsPage));
  scope.get('/registry', OPEN, (_request, reply) => html(reply, registryPage));
  // Says that the process runs, whatever its store and its broker do.
  scope.get('/livez', OPEN, async () => ({ status: 'ok' }));
  scope.get('/readyz', OPEN, (request, reply) => health.readiness.answer(request, reply));
  scope.get('/healthz', OPEN, async (_request, reply) => {
    const reason = await health.problem();
    const seen = { ...(health.clock && { clock: health.clock }), ...clusterView(world) };
    if (reason !== undefined) return reply.code(503).send({ status: 'failed', reason, ...seen });
    // Waiting callbacks are shown, but do not make the gateway unhealthy.
    const pending = await backlog();
    if (pending === undefined)
      return reply.code(503).send({ status: 'failed', reason: 'the store does not answer', ...seen });
    const { partners: _partners, ...callbacks } = pending;
    return { status: 'ok', mode: config.mode, ...seen, callbacks };
  });
  // How much money a shop gets concerns nobody else.
  scope.get('/metrics', { config: { access: config.mode === 'live' ? 'look' : 'anybody' } }, async (_request, reply) =>
    reply.type(metrics.contentType).send(await metrics.text()),
  );

  const forms = Object.fromEntries(TABLES.map((table) => [table, formsOf(table)]));
  const script = `export const RESOURCES = ${JSON.stringify(forms)};\n`;
  scope.get('/registry-table.js', OPEN, (_request, reply) => reply.type(SCRIPT).send(script));
  for (const [path, file] of Object.entries(PAGE_FILES)) {
    const type = path.endsWith('.css') ? 'text/css; charset=utf-8' : SCRIPT;
    // The file is read once, so that many slow readers share one copy.
    let content: Promise<Buffer> | undefined;
    scope.get(path, OPEN, async (_request, reply) => {
      content ??= readFile(file);
      return reply.type(type).send(await content);
    });
  }

  // Returns the picture of a QR, by a reference that nobody can guess.
  scope.get<{ Params: { ref: string } }>('/qr/:ref', OPEN, async (request, reply) => {
    const qrCode = await store.qrCodes.find(request.params.ref);
    if (qrCode === undefined) {
      return answerRefusal(request, reply, log, { code: 'E96', reason: 'no QR has this reference' }, 404);
    }
    const { toString: draw } = await import('qrcode');
    const svg = await draw(qrCode, { type: 'svg', margin: 4, width: QR_SVG_WIDTH_PX, errorCorrectionLevel: 'M' });
    // Pages of partners, which are on other sites, show this picture.
    reply.header('cross-origin-resource-policy', 'cross-origin').header('cache-control', 'max-age=3600');
    return reply.type('image/svg+xml').send(svg);
  });
}
