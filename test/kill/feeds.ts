import { DEMO } from '../benchmarks/fixture.ts';
import { cassoList, openListServer, payosList, sepayList } from '../support/provider-lists.ts';
import { type Moved, PROVIDERS, type Provider } from '../support/providers.ts';

/** A source of the gateway, by its name. */
export type Teller = 'sepay' | 'casso' | 'payos' | 'vietqr';
/** How the sources prove who they are: over the body, or by a key alone where they have both ways. */
export type Proofs = 'signed' | 'keyed';

const WAYS: Readonly<Record<Proofs, Readonly<Record<Teller, string>>>> = {
  signed: { sepay: 'sepay signed', casso: 'casso V2', payos: 'payos', vietqr: 'vietqr' },
  keyed: { sepay: 'sepay by key', casso: 'casso V1', payos: 'payos', vietqr: 'vietqr' },
};
/** Sources that have a list. */
export type Listing = Exclude<Teller, 'vietqr'>;
/** Rows on one page of a list: a run has more. */
const PAGE_ROWS = 2;

/** The providers of a world, with their lists on this machine. */
export interface Feeds {
  /** `sources` of the gateway's file. */
  sources: object[];
  providers: Readonly<Record<Teller, Provider>>;
  /** From now on the list of a source has this money and no other. */
  list(moved: Readonly<Record<Listing, readonly Moved[]>>): void;
  close(): Promise<void>;
}

export async function openFeeds(proofs: Proofs): Promise<Feeds> {
  const providerOf = (name: Teller): Provider => {
    const provider = PROVIDERS[WAYS[proofs][name]];
    if (provider === undefined) throw new Error(`no provider ${WAYS[proofs][name]}`);
    return provider;
  };
  const lists = { sepay: sepayList(PAGE_ROWS), casso: cassoList(PAGE_ROWS), payos: payosList() };
  const names = ['sepay', 'casso', 'payos'] as const;
  const servers = await Promise.all(names.map((name) => openListServer(lists[name])));
  // The list of SePay and of Casso is the same, whatever the proof of their webhooks.
  const listed = names.map((name, i) => ({
    name,
    ...lists[name].options(servers[i]?.url ?? ''),
    ...providerOf(name).options,
  }));
  return {
    sources: [...listed, { name: 'vietqr', ...providerOf('vietqr').options }],
    providers: {
      sepay: providerOf('sepay'),
      casso: providerOf('casso'),
      payos: providerOf('payos'),
      vietqr: providerOf('vietqr'),
    },
    list: (moved) => {
      for (const name of names) lists[name].moved.splice(0, Number.POSITIVE_INFINITY, ...moved[name]);
    },
    close: async () => {
      await Promise.all(servers.map((it) => it.close()));
    },
  };
}

/** What banks make of a content. */
export function bankText(number: number, content: string): string {
  const texts = [content, content.toLowerCase().replaceAll(' ', ''), `${content.slice(0, 4)} ${content.slice(4)}`];
  return `MBVCB.${number}.${texts[number % texts.length]}.CT tu 9990001 toi ${DEMO.account.bankAccount}`;
}

/** Each source writes the bank's reference in its own way. */
export function spelledBy(teller: Teller, reference: string): string {
  if (teller === 'casso') return reference.toLowerCase();
  return teller === 'vietqr' ? `${reference.slice(0, 4)}-${reference.slice(4)}` : reference;
}
