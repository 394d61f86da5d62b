import { type AddHelpTextContext, type AddHelpTextPosition, Command } from 'commander';
import { suggestion } from '../../lib/suggestion.ts';
import { wrappedHelp } from './wrapped-help.ts';

const HELP = ['-h', '--help'];
/** The output has this many columns if it is not a terminal, as in commander. */
const COLUMNS_DEFAULT = 80;
/** The help wraps the words beside an option from this column on. */
const WORDS_COLUMNS_MIN = 16;

/**
 * Names a mistyped word before it does anything else. commander would first ask for missing options, and answer
 * `--help` of an unknown command with the general help.
 */
export class Program extends Command {
  constructor(name?: string) {
    super(name);
    this.configureHelp({ minWidthToWrap: WORDS_COLUMNS_MIN });
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
    const hint = flag.startsWith('--') ? suggestion(flag, known) : '';
    this.error(`error: unknown option '${flag}'${hint}`, { code: 'commander.unknownOption' });
  }
}
