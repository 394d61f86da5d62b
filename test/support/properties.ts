import fc from 'fast-check';

/** Property tests use the same values each time; PAYBOX_PROPERTY_SEED selects others, as the soak does. */
fc.configureGlobal({ seed: Number(process.env.PAYBOX_PROPERTY_SEED ?? 1) });

export { fc };
