import { z } from 'zod';

/** Kinds of virtual accounts of one account. */
export const VIRTUAL_ACCOUNTS_MAX = 16;
/** Too many accounts would share a shorter beginning. */
const BEGINS_CHARS_MIN = 3;

/**
 * Lists virtual accounts whose money arrives at an account: those of this bank with these beginnings. A provider that
 * makes QRs may use another one for each order (PROTOCOL.md, clause PQR-3).
 */
export const virtualAccounts = z.object({
  bin: z.string().regex(/^\d{6}$/, 'six digits'),
  begins: z
    .string()
    .regex(new RegExp(`^[A-Za-z0-9]{${BEGINS_CHARS_MIN},19}$`), `${BEGINS_CHARS_MIN} to 19 letters or digits`),
});
export type VirtualAccounts = z.infer<typeof virtualAccounts>;

/** Returns whether a QR pays to one of these virtual accounts. */
export function isAmong(
  all: readonly VirtualAccounts[],
  { bin, account, service }: { bin: string; account: string; service: 'account' | 'card' },
): boolean {
  return service === 'account' && all.some((it) => it.bin === bin && account.startsWith(it.begins));
}
