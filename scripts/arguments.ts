import { type ParseArgsConfig, parseArgs } from 'node:util';

/** Returns the arguments of a script. A mistake in them ends the program with the line of its usage and exit code 2. */
export function argumentsOf<T extends ParseArgsConfig>(usage: string, config: T): ReturnType<typeof parseArgs<T>> {
  try {
    return parseArgs(config);
  } catch (error) {
    if (!(error instanceof TypeError && 'code' in error && String(error.code).startsWith('ERR_PARSE_ARGS')))
      throw error;
    const [problem] = error.message.split('. ', 1);
    process.stderr.write(`${problem}\n${usage.split('\n', 1)[0]}\nrun it with --help to see more\n`);
    process.exit(2);
  }
}
