import type { Cut } from '../io/answers.ts';

/** Ends every command and every answer. */
export const END = [0xff, 0xff, 0xff];

/** What the panel answers to a command that it refuses, by the first byte (Nextion instruction set, return data). */
export const REFUSALS: ReadonlyMap<number, string> = new Map([
  [0x00, 'it does not know the command'],
  [0x02, 'no such component'],
  [0x03, 'no such page'],
  [0x1a, 'no such component or attribute'],
  [0x1b, 'the component does not take this value'],
  [0x1c, 'the value could not be assigned'],
  [0x1e, 'wrong number of parameters'],
  [0x20, 'wrong escape character'],
  [0x23, 'a name is too long'],
  [0x24, 'its buffer overflowed'],
]);

export const DONE = 0x01;
export const NO_COMPONENT = [0x02, 0x1a];
export const NO_PAGE = 0x03;
/** What a panel says when power has come. */
const READY = 0x88;
/** Begins the text that was asked for. */
export const STRING = 0x70;

/** After power came: `00 00 00` and `88`. */
export function isRestart(answer: Uint8Array): boolean {
  return (answer.length === 1 && answer[0] === READY) || (answer.length === 3 && answer.every((byte) => byte === 0));
}

/** Cuts answers off a stream of bytes, without their end. */
export const cutAnswer: Cut = (bytes) => {
  const end = bytes.findIndex((_, at) => END.every((byte, offset) => bytes[at + offset] === byte));
  return end < 0 ? undefined : { answer: bytes.slice(0, end), length: end + END.length };
};
