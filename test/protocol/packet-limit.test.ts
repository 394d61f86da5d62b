import { Duplex } from 'node:stream';
import { expect, it } from 'vitest';
import { readWhole } from '../../src/protocol/packet-limit.ts';

/** A stream as Node has it since 26: each read gives one chunk of those that have arrived. */
class InChunks extends Duplex {
  readonly #chunks: Buffer[];

  constructor(...chunks: string[]) {
    super();
    this.#chunks = chunks.map((it) => Buffer.from(it));
  }

  override read(_bytes?: number): Buffer | null {
    return this.#chunks.shift() ?? null;
  }
}

it('a broker reads all of a packet that has arrived in parts, on every Node', () => {
  const stream = readWhole(new InChunks('con', 'n', 'ect'));
  expect(String(stream.read())).toBe('connect');
  expect(stream.read()).toBeNull();
  expect(String(readWhole(new InChunks('connect')).read())).toBe('connect');
  expect(String(readWhole(new InChunks('con', 'nect')).read(3))).toBe('con');
});
