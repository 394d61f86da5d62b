/** Finished rows are kept for this time. Something that is reported again later is not recognised any more. */
export const RETENTION_MS = 30 * 86_400_000;
