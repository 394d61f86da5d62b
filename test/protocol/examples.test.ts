import { describe, expect, it } from 'vitest';
import { downMessage, upMessage } from '../../src/protocol/messages.ts';
import { readProtocol } from './document.ts';

const ID = '3d0f7a52-6c1e-4b7a-9f52-0d2f6f1c46f0';
const HEAD = { v: 1, id: ID, sentAtMs: 1_767_225_600_000, sessionId: ID };

/** The examples of PROTOCOL.md, one JSON a line; shortened ids stand for complete ones. */
const examples = [...readProtocol().matchAll(/^\{"type":"(\w+)".*\}$/gm)].map(([line, type = '']) => ({
  type,
  body: JSON.parse(line.replaceAll(/"[0-9a-f]{4}…"/g, `"${ID}"`)) as object,
}));
const schemas = [...upMessage.options, ...downMessage.options];

describe('the examples of PROTOCOL.md', () => {
  it('MSG-1 MSG-2 are one of each message', () => {
    const types = schemas.map((schema) => schema.shape.type.value);
    expect(examples.map(({ type }) => type).sort()).toEqual([...types].sort());
  });

  it.each(examples)('MSG-1 are legal: $type', ({ type, body }) => {
    const schema = schemas.find((it) => it.shape.type.value === type);
    expect(schema?.strict().parse({ ...HEAD, ...body })).toMatchObject(body);
  });
});
