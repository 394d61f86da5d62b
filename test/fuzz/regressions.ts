const text = (value: string) => Buffer.from(value);

/** Inputs that broke a property once, by the name of their target; they are always fed first. */
export const REGRESSIONS: Readonly<Record<string, readonly Buffer[]>> = {
  nextion: [Buffer.from('0b0103ffffff0003ffffff', 'hex')],
  'agent configuration': [
    text('- '.repeat(4_000)),
    text('['.repeat(20_000)),
    text('a: *nobody'),
    text('!!binary aGk='),
    text('box: {}'),
  ],
};
