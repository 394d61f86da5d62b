import type { YamlText } from '../../lib/yaml-text.ts';

/** The longest excerpt of a failure, in lines. */
const EXCERPT_LINES_MAX = 12;

export interface Place {
  /** Line and column count from 1. */
  line: number;
  column: number;
}

/** A line of a scenario file, for a failure. */
export interface SourceLine {
  line: number;
  text: string;
  /** True if it belongs to the step itself, not to its surroundings. */
  isOfStep: boolean;
}

/** The text of a scenario file, with places for messages. */
export interface Source {
  /** The name of the file for messages. */
  readonly file: string;
  /** The file's folder, which has golden pictures and included files. */
  readonly folder: string;
  /** Returns the place of a value, or of its nearest parent. */
  placeOf(path: readonly PropertyKey[]): Place;
  /**
   * Returns the place of these characters in a value, or the place of the value where they are written in another way.
   */
  placeIn(path: readonly PropertyKey[], characters: string): Place;
  /** Returns the lines of a step and the one before it. */
  excerpt(path: readonly PropertyKey[]): SourceLine[];
}

/** Returns the source of a text without a file, for example the steps that a caller sends to a rig. */
export function noSource(name: string): Source {
  const placeOf = () => ({ line: 1, column: 1 });
  return { file: name, folder: '.', placeOf, placeIn: placeOf, excerpt: () => [] };
}

/** Returns the source of a parsed YAML text. */
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
