import type { Kysely } from 'kysely';
import type { Tables } from '../schema/tables.ts';

/** Stores the QRs that partners have generated, by the name in the link to their picture. */
export class QrCodeStore {
  readonly #db: Kysely<Tables>;

  constructor(db: Kysely<Tables>) {
    this.#db = db;
  }

  add(ref: string, qrCode: string, atMs: number): Promise<void> {
    return insertQrCode(this.#db, ref, qrCode, atMs);
  }

  async find(ref: string): Promise<string | undefined> {
    const row = await this.#db.selectFrom('qr_codes').select('qr_code').where('ref', '=', ref).executeTakeFirst();
    return row?.qr_code;
  }
}

export async function insertQrCode(db: Kysely<Tables>, ref: string, qrCode: string, atMs: number): Promise<void> {
  await db.insertInto('qr_codes').values({ ref, qr_code: qrCode, created_at_ms: atMs }).execute();
}
