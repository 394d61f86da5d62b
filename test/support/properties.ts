import fc from 'fast-check';

/** Properties are tried with the same values each time; PAYBOX_PROPERTY_SEED makes others, as the soak does. */
fc.configureGlobal({ seed: Number(process.env.PAYBOX_PROPERTY_SEED ?? 1) });

export { fc };
