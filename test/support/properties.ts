import fc from 'fast-check';

/** Property tests use the same values each time; PAYBOX_PROPERTY_SEED selects others, as the soak does. */
fc.configureGlobal({ seed: Number(process.env.PAYBOX_PROPERTY_SEED ?? 1) });

const SURROGATES_FROM = 0xd800;
const SURROGATES = 0x800;

/** Any code point, for `unit` of a text: fast-check's own `binary` makes a table of all 1.1 million, a second and 100 MB in each process. */
const anyChar = fc.integer({ min: 0, max: 0x10ffff - SURROGATES }).map(
  (index) => String.fromCodePoint(index < SURROGATES_FROM ? index : index + SURROGATES),
  (char) => {
    if (typeof char !== 'string' || char.length !== 1 || char.charCodeAt(0) >= SURROGATES_FROM)
      throw new Error('not known');
    return char.charCodeAt(0);
  },
);

export { anyChar, fc };
