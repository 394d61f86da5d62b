import type { YamlText } from '../../lib/yaml-text.ts';

/** The longest excerpt that a failure shows, in lines. */
const EXCERPT_LINES_MAX = 12;

export interface Place {
  /** Both count from 1. */
  line: number;
  column: number;
}

/** A line of a scenario file, for a failure. */
export interface SourceLine {
  line: number;
  text: string;
  /** Whether it belongs to the step itself, not to its surroundings. */
  isOfStep: boolean;
}

/** The text of a scenario file, with places for messages. */
export interface Source {
  /** File name for messages. */
  readonly file: string;
  /** Its folder, where golden pictures and included files are. */
  readonly folder: string;
  /** Place of a value, or of its nearest parent. */
  placeOf(path: readonly PropertyKey[]): Place;
  /** Place of these characters in a value; of the value where they are written otherwise. */
  placeIn(path: readonly PropertyKey[], characters: string): Place;
  /** The lines of a step and the one before it. */
  excerpt(path: readonly PropertyKey[]): SourceLine[];
}

/** A text that is no file, as the steps that a rig is sent. */
export function noSource(name: string): Source {
  const placeOf = () => ({ line: 1, column: 1 });
  return { file: name, folder: '.', placeOf, placeIn: placeOf, excerpt: () => [] };
}

/** The source of a parsed YAML text. */
export function sourceOf(yaml: YamlText, text: string, file: string, folder: string): Source {
  const lines = text.split(/\r?\n/);
  const placeAt = (offset: number): Place => {
    const before = text.slice(0, offset).split('\n');
    return { line: before.length, column: (before.at(-1) ?? '').length + 1 };
  };
  const placeOf = (path: readonly PropertyKey[]): Place => {
    const line = yaml.lineOf(path);
    const range = yaml.rangeOf(path);
    const value = range && placeAt(range[0]);
    const key = String(path.at(-1) ?? '');
    const words = lines[line - 1] ?? '';
    if (/^\d*$/.test(key) && value?.line === line) return value;
    const at = words.lastIndexOf(key, value?.line === line ? value.column - 1 : words.length);
    return { line, column: (key === '' || at < 0 ? words.search(/\S|$/) : at) + 1 };
  };
  return {
    file,
    folder,
    placeOf,
    placeIn: (path, characters) => {
      const [from, to] = yaml.rangeOf(path) ?? [0, 0];
      const at = text.indexOf(characters, from);
      return at < 0 || at >= to ? placeOf(path) : placeAt(at);
    },
    excerpt: (path) => {
      const [from, to] = yaml.rangeOf(path) ?? [0, 0];
      const first = placeOf(path).line;
      const last = first + text.slice(from, to).trimEnd().split('\n').length - 1;
      const shown = lines.slice(Math.max(0, first - 2), Math.min(last, first + EXCERPT_LINES_MAX - 1));
      return shown.map((it, index) => {
        const line = Math.max(1, first - 1) + index;
        return { line, text: it, isOfStep: line >= first };
      });
    },
  };
}
