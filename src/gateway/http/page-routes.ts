import { readFile } from 'node:fs/promises';
import type { FastifyInstance, FastifyReply } from 'fastify';
import type { Logger } from '../../lib/log.ts';
import type { Metrics } from '../metrics.ts';
import type { Store } from '../store/store.ts';
import { openApi } from './openapi.ts';
import { answerRefusal } from './requests.ts';

const SWAGGER_FILES: Record<string, string> = {
  'swagger-ui.css': 'text/css; charset=utf-8',
  'swagger-ui-bundle.js': 'text/javascript; charset=utf-8',
};
/** Pages load nothing from elsewhere, whatever gets into them. */
const PAGE_POLICY =
  "default-src 'self'; script-src 'self' 'unsafe-inline'; style-src 'self' 'unsafe-inline'; img-src 'self' data:";
const QR_SVG_WIDTH_PX = 480;

export interface PageRoutesDeps {
  store: Store;
  metrics: Metrics;
  log: Logger;
  basePath: string;
}

/** Pages for people, and the two addresses for machines that watch the gateway. */
export async function pageRoutes(scope: FastifyInstance, { store, metrics, log, basePath }: PageRoutesDeps) {
  const page = (name: string) => readFile(new URL(`../pages/${name}`, import.meta.url), 'utf8');
  const [consolePage, docsPage] = await Promise.all([page('console.html'), page('docs.html')]);
  const html = (reply: FastifyReply, text: string) =>
    reply.type('text/html; charset=utf-8').header('content-security-policy', PAGE_POLICY).send(text);

  scope.get('/', (_request, reply) => html(reply, consolePage));
  scope.get('/docs', (_request, reply) => html(reply, docsPage));
  scope.get('/openapi.json', () => openApi(basePath === '' ? '/' : basePath));
  scope.get('/healthz', () => ({ status: 'ok' }));
  scope.get('/metrics', async (_request, reply) => reply.type(metrics.contentType).send(await metrics.text()));

  scope.get<{ Params: { file: string } }>('/docs/:file', async (request, reply) => {
    const { file } = request.params;
    const type = SWAGGER_FILES[file];
    if (type === undefined || !Object.hasOwn(SWAGGER_FILES, file)) {
      return answerRefusal(request, reply, log, { code: 'E46', reason: 'unknown path' }, 404);
    }
    const url = new URL(file, import.meta.resolve('swagger-ui-dist/package.json'));
    return reply
      .type(type)
      .header('cache-control', 'max-age=3600')
      .send(await readFile(url));
  });

  scope.get<{ Params: { ref: string } }>('/qr/:ref', async (request, reply) => {
    const qrCode = await store.orders.qrCode(request.params.ref);
    if (qrCode === undefined) {
      return answerRefusal(request, reply, log, { code: 'E96', reason: 'no QR has this reference' }, 404);
    }
    const { toString: draw } = await import('qrcode');
    const svg = await draw(qrCode, { type: 'svg', margin: 4, width: QR_SVG_WIDTH_PX, errorCorrectionLevel: 'M' });
    return reply.type('image/svg+xml').header('cache-control', 'max-age=3600').send(svg);
  });
}
