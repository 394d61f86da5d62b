/** How long finished rows are kept; what is told again later than that is not known any more. */
export const RETENTION_MS = 30 * 86_400_000;
