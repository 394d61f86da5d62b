import { stringify } from 'yaml';
import { oneLine, tookText } from '../reports/text.ts';
import type { Line } from './line.ts';
import type { Recording } from './recording.ts';
import { gapsOf, type Story, storyOf } from './story.ts';

const COMMENT_CHARS_MAX = 300;
/** What begins sooner after another is said without its time. */
const TIMED_MS = 1_000;
/** Verbs that begin something: an empty line goes before them, and when it was. */
const BEGINNINGS = ['push', 'generate', 'parallel'];

/** A recording as a scenario file that a person reads and `paybox bench run` replays; undefined when nothing was done. */
export function fileOf(recording: Recording): string | undefined {
  const story = storyOf(recording);
  if (!story.lines.some(({ step }) => step !== undefined && step.expect === undefined)) return undefined;
  return [...headOf(recording, story), 'steps:', ...stepsOf(story), ''].join('\n');
}

function headOf(recording: Recording, story: Story): string[] {
  const { stand, counts } = story;
  const at = new Date(recording.writtenAtMs).toISOString().slice(0, 16).replace('T', ' ');
  const { bankAccount, bankCode } = stand.account;
  const boxes = stand.boxes.map((box, index) => `${box} is box ${index + 1}`).join(', ');
  const comments = [
    `Recorded at ${recording.origin} until ${at} UTC.`,
    'Replay it with: paybox bench run THIS-FILE',
    `There ${bankCode} ${bankAccount} was the account; ${boxes === '' ? 'no box was heard of' : boxes}.`,
    ...gapsOf(recording, story).flatMap(({ notes }) => notes),
  ];
  return [
    ...comments.map(comment),
    stringify({ name: `A session of ${at}` }).trim(),
    `about: ${many(counts.orders, 'order')} and ${many(counts.payments, 'payment')} as they were recorded.`,
    ...(stand.boxes.length > 1 ? [`boxes: ${stand.boxes.length}`] : []),
    '',
  ];
}

function stepsOf({ lines }: Story): string[] {
  const beganMs = lines[0]?.atMs ?? 0;
  let saidMs = beganMs;
  let isPaused = false;
  return lines.flatMap((it, index) => {
    const wasPaused = isPaused;
    isPaused = it.step?.wait !== undefined;
    const begins = isBeginning(it) || (isPaused && isBeginning(lines[index + 1]));
    const space = begins && !wasPaused ? [''] : [];
    if (!isBeginning(it) || it.atMs - saidMs < TIMED_MS) return [...space, ...blockOf(it)];
    saidMs = it.atMs;
    return [...space, `  # ${tookText(it.atMs - beganMs)} on`, ...blockOf(it)];
  });
}

function isBeginning(it: Line | undefined): boolean {
  return BEGINNINGS.some((verb) => it?.step?.[verb] !== undefined);
}

function blockOf({ notes, step }: Line): string[] {
  const comments = notes.map((words) => `  ${comment(words)}`);
  return step === undefined ? comments : [...comments, ...itemOf(step).map((text) => `  ${text}`)];
}

/** A step as an item of a list. */
function itemOf({ parallel, ...step }: Record<string, unknown>): string[] {
  const keys = Object.entries(step).map(([key, value]) => {
    // One line a verb, as people write scenarios.
    const text = stringify({ [key]: value }, { collectionStyle: 'flow', lineWidth: 0, flowCollectionPadding: true });
    return text.trim().slice(1, -1).trim();
  });
  const branches = (parallel ?? []) as Record<string, unknown>[][];
  const lists = branches.flatMap((steps) => listed(steps.flatMap(itemOf)).map((text) => `  ${text}`));
  return listed([...keys, ...(parallel === undefined ? [] : ['parallel:', ...lists])]);
}

/** Lines as one item. */
function listed(lines: readonly string[]): string[] {
  return lines.map((text, index) => `${index === 0 ? '- ' : '  '}${text}`);
}

function many(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? '' : 's'}`;
}

function comment(words: string): string {
  return `# ${oneLine(words).slice(0, COMMENT_CHARS_MAX)}`;
}
