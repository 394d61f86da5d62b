import { z } from 'zod';

/** Kinds of virtual accounts of one account. */
export const VIRTUAL_ACCOUNTS_MAX = 16;
/** Shorter beginnings would be those of too many accounts. */
const BEGINS_CHARS_MIN = 3;

/**
 * Virtual accounts whose money comes to an account: those of this bank that begin so. A provider that makes QRs may take
 * another one for each order (PROTOCOL.md, clause PQR-3).
 */
export const virtualAccounts = z.object({
  bin: z.string().regex(/^\d{6}$/, 'six digits'),
  begins: z
    .string()
    .regex(new RegExp(`^[A-Za-z0-9]{${BEGINS_CHARS_MIN},19}$`), `${BEGINS_CHARS_MIN} to 19 letters or digits`),
});
export type VirtualAccounts = z.infer<typeof virtualAccounts>;

/** Whether a QR pays to one of these virtual accounts. */
export function isAmong(
  all: readonly VirtualAccounts[],
  { bin, account, service }: { bin: string; account: string; service: 'account' | 'card' },
): boolean {
  return service === 'account' && all.some((it) => it.bin === bin && account.startsWith(it.begins));
}
