import type { ServerResponse } from 'node:http';
import type { FastifyInstance } from 'fastify';
import { type Clock, withDeadline } from '../../lib/clock.ts';

/** How long an app that closes waits for the answers to what it has been asked. */
const ANSWER_TIMEOUT_MS = 500;

/**
 * Has an app that closes answer first whoever has asked, while it takes no more connections. Who is still sending its
 * request is not waited for.
 */
export function answerBeforeClosing(app: FastifyInstance, clock: Clock): void {
  const unanswered = new Set<ServerResponse>();
  const answered = Promise.withResolvers<void>();
  let closing = false;
  const settle = () => {
    if (closing && unanswered.size === 0) answered.resolve();
  };
  app.addHook('preHandler', async (_request, { raw }) => {
    unanswered.add(raw);
    raw.once('close', () => {
      unanswered.delete(raw);
      settle();
    });
  });
  app.addHook('preClose', async () => {
    app.server.close();
    closing = true;
    settle();
    await withDeadline(clock, ANSWER_TIMEOUT_MS, answered.promise);
  });
}
