import { type AddHelpTextContext, type AddHelpTextPosition, Command } from 'commander';
import { suggestion } from '../../lib/suggestion.ts';

const HELP = ['-h', '--help'];
/** The output has this many columns if it is not a terminal, as in commander. */
const COLUMNS_DEFAULT = 80;
/** The help wraps the words beside an option from this column on. */
const WORDS_COLUMNS_MIN = 16;

/** Returns an error of commander in words for a person: the option, its value, and what was expected. */
function inWords(error: string): string {
  return error
    .replace(/^error: option '(--\S+)[^']*' argument '([\s\S]*)' is invalid\. /, 'error: $1 $2: ')
    .replace(/^error: required option '(--.+)' not specified/, 'error: $1 is missing')
    .replace(/Allowed choices are (.*)\.$/m, 'expected one of $1');
}

/**
 * Names a mistyped word before it does anything else. commander would first ask for missing options, and answer
 * `--help` of an unknown command with the general help.
 */
export class Program extends Command {
  constructor(name?: string) {
    super(name);
    this.configureHelp({ minWidthToWrap: WORDS_COLUMNS_MIN });
    this.configureOutput({ outputError: (text, write) => write(inWords(text)) });
  }

  override createCommand(name?: string): Command {
    return new Program(name);
  }

  override addHelpText(position: AddHelpTextPosition, text: string | ((context: AddHelpTextContext) => string)): this {
    const columns = ({ error }: AddHelpTextContext) => {
      const { getErrHelpWidth, getOutHelpWidth } = this.configureOutput();
      return (error ? getErrHelpWidth?.() : getOutHelpWidth?.()) ?? COLUMNS_DEFAULT;
    };
    const written = (context: AddHelpTextContext) => (typeof text === 'string' ? text : text(context));
    return super.addHelpText(position, (context) => wrappedHelp(written(context), columns(context)));
  }

  override parseOptions(args: string[]): ReturnType<Command['parseOptions']> {
    const parsed = super.parseOptions(args);
    const asksHelp = parsed.unknown.some((it) => HELP.includes(it));
    if (this.parent === null && (asksHelp || parsed.operands.includes('help'))) this.#assertCommands(parsed.operands);
    const [option] = parsed.unknown;
    if (this.commands.length === 0 && !asksHelp && option?.startsWith('-')) this.#refuseOption(option);
    return parsed;
  }

  /** Refuses a word before the first option that is not the name of a command. */
  #assertCommands(words: readonly string[]): void {
    let command: Command = this;
    for (const word of words) {
      if (command.commands.length === 0) return;
      if (word === 'help') continue;
      const found = command.commands.find((it) => it.name() === word);
      if (found === undefined) {
        const hint = suggestion(
          word,
          command.commands.map((it) => it.name()),
        );
        command.error(`error: unknown command '${word}'${hint}`, { code: 'commander.unknownCommand' });
      }
      command = found;
    }
  }

  #refuseOption(option: string): void {
    const [flag = ''] = option.split('=');
    const known = this.options.flatMap((it) => it.long ?? []);
    if (known.includes(flag)) this.error(`error: ${flag} takes no value`, { code: 'commander.excessArguments' });
    const hint = flag.startsWith('--') ? suggestion(flag, known) : '';
    this.error(`error: unknown option '${flag}'${hint}`, { code: 'commander.unknownOption' });
  }
}

/** The gap between a command of an example and what it does. */
const GAP = / {2,}(?=\S)/;
const WORDS_INDENT = 6;

/** A run of lines without an indent, which are one paragraph, or a single line. */
const PARAGRAPHS = /^\S.*(?:\n\S.*)*|^.*$/gm;

/**
 * Returns the text after the options of a command's help, wrapped at this many columns. A paragraph with a line that is
 * too wide is wrapped again as a whole. The explanation of a wide example goes below its command. A command stays on one
 * line, so that it can be copied.
 */
export function wrappedHelp(text: string, columns: number): string {
  return text.replaceAll(PARAGRAPHS, (part) =>
    part.split('\n').every((line) => line.length <= columns)
      ? part
      : narrow(part.replaceAll('\n', ' '), columns).join('\n'),
  );
}

function narrow(line: string, columns: number): string[] {
  const indent = line.length - line.trimStart().length;
  const inner = line.slice(indent);
  const { index, 0: gap = '' } = GAP.exec(inner) ?? {};
  if (index !== undefined) {
    const words = inner.slice(index + gap.length);
    return [...narrow(line.slice(0, indent + index), columns), ...wordsIn(words, columns, WORDS_INDENT)];
  }
  return inner.startsWith('$ ') ? [line] : wordsIn(inner, columns, indent);
}

function wordsIn(text: string, columns: number, indent: number): string[] {
  const margin = ' '.repeat(indent);
  const lines: string[] = [];
  for (const word of text.split(' ')) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + word.length <= columns) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(`${margin}${word}`);
  }
  return lines;
}
