/** A call of an admin below `/admin/v1`. */
export async function admin(
  { origin }: { origin: string },
  method: string,
  path: string,
  body?: unknown,
  headers: Record<string, string> = {},
): Promise<{ status: number; body: Record<string, unknown>; headers: Headers }> {
  const json = body === undefined ? {} : { 'content-type': 'application/json' };
  const answer = await fetch(`${origin}/admin/v1/${path}`, {
    method,
    headers: { ...json, ...headers },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const read = (await answer.json()) as Record<string, unknown>;
  return { status: answer.status, body: read, headers: answer.headers };
}

/** Opens a stream of events with a token. */
export async function openStream(url: string, token: string) {
  const answer = await fetch(url, { headers: { authorization: `Bearer ${token}` } });
  const reader = answer.body?.getReader();
  const stream = { status: answer.status, isOver: false, ended: Promise.resolve(), leave: () => reader?.cancel() };
  stream.ended = (async () => {
    while ((await reader?.read())?.done === false);
  })().finally(() => {
    stream.isOver = true;
  });
  return stream;
}
