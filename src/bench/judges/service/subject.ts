import type { Account } from '../../engine/clients/gateway.ts';
import type { TestTime } from '../../engine/test-time.ts';
import type { CheckRun } from '../check.ts';
import type { CallbackAuth, CallbackListener } from './callback-listener.ts';
import { Redactor } from './redactor.ts';

/** Login of a partner at a service. */
export interface ServiceAccess {
  /** With its path prefix, as `https://dev.example.com/vqr`; without a slash at the end. */
  baseUrl: string;
  username: string;
  password: string;
}

/** A box that is linked to the account. */
export interface BoxName {
  terminalCode: string;
  serialNumber: string;
}

/** Things that a check may need beside the service and an account. */
export type ServiceNeed = keyof typeof NEEDS;

export interface ServiceOptions {
  access: ServiceAccess;
  account: Account;
  time: TestTime;
  /** Letters and digits that make the orders of this run differ from others. */
  tag: string;
  /** The lowest amount that every fourth order may have, 1 to 50,000,000. Each run has another one. */
  firstAmount: number;
  sandbox: boolean;
  /** Access to the same service outside a sandbox. */
  outside?: ServiceAccess | undefined;
  box?: Partial<BoxName> | undefined;
  /** Secret of the box. With it the bench can simulate the box. */
  boxSecret?: string | undefined;
  /** The confirmation for which the service waits before it answers a push. */
  confirm: 'displayed' | 'accepted';
  /** A running box, and the QR on its screen if that can be seen. */
  boxOn?: Partial<BoxName> | undefined;
  seeQr?: (() => Promise<string | undefined>) | undefined;
  unlinkedBox?: string | undefined;
  second?: ServiceAccess | undefined;
  /** Account of the second partner, who has no callback endpoint. */
  secondAccount?: string | undefined;
  /** Its bank: short name or BIN. */
  secondBank?: string | undefined;
  listener?: CallbackListener | undefined;
  callbackAuth?: CallbackAuth | undefined;
  /** As the service has it, `whsec_…`. */
  signingSecret?: string | undefined;
  /** The default is `ANSWER_TIMEOUT_MS`. */
  answerTimeoutMs?: number;
  /** True if checks that take minutes run. */
  slow: boolean;
  /** True if the judge may send wrong passwords until the service limits them. */
  guessPasswords: boolean;
}

/** Longer than the deadline of a push. */
export const ANSWER_TIMEOUT_MS = 20_000;

/** An order that differs from all others. */
export interface Order {
  amount: number;
  /** At most 19 letters and digits; also the id of the order. */
  content: string;
}

/** A request of the judge, with the fields of its JSON. */
export interface SentRequest {
  /** Without the query, and perhaps with the base address before it. */
  path: string;
  fields: Readonly<Record<string, unknown>>;
  /** Undefined until the answer has come. */
  answer: { status: number; json: unknown } | undefined;
}

export type ServiceRun = CheckRun<ServiceSubject>;
const NUMBER_DIGITS = 4;
/** Orders of a run begin at these amounts in turn, and at one that differs in each run. */
const AMOUNTS_FROM = [1_000, 35_000, 2 ** 31] as const;

/** Records what the run has sent to the judged service, and what came back. */
export class ServiceSubject {
  readonly options: ServiceOptions;
  readonly redactor = new Redactor();
  /** The codes of all refusals so far. */
  readonly codes = new Set<string>();
  /** All requests of the run, in order. */
  readonly sent: SentRequest[] = [];
  /** When the run began, by the clock of the target. */
  readonly beganMs: number;
  readonly tokens = new Map<string, { token: string; sinceMs: number }>();
  /** All tokens of the partner, oldest first. */
  readonly issued: { token: string; sinceMs: number }[] = [];
  /** Ages, in milliseconds, at which tokens were refused although a new one was taken. */
  readonly endedTokensMs: number[] = [];
  /** Secrets in answers, in words; TOK-1 gives the token. */
  readonly leaks = new Set<string>();
  #orders = 0;

  constructor(options: ServiceOptions) {
    this.options = options;
    this.beganMs = options.time.clock.wallMs();
    const { access, second, outside, boxSecret, signingSecret, callbackAuth } = options;
    for (const partner of [access, second, outside]) {
      if (partner === undefined) continue;
      this.redactor.addSecret(partner.password);
      this.redactor.addSecret(Buffer.from(`${partner.username}:${partner.password}`, 'utf8').toString('base64'));
    }
    for (const secret of [boxSecret, signingSecret]) if (secret !== undefined) this.redactor.addSecret(secret);
    if (callbackAuth?.kind === 'bearer') this.redactor.addSecret(callbackAuth.token);
    if (callbackAuth?.kind === 'token') this.redactor.addSecret(callbackAuth.password);
  }

  get time(): TestTime {
    return this.options.time;
  }

  newOrder(): Order {
    this.#orders += 1;
    const content = `${this.options.tag}${String(this.#orders).padStart(NUMBER_DIGITS, '0')}`;
    const from = AMOUNTS_FROM[this.#orders % (AMOUNTS_FROM.length + 1)] ?? this.options.firstAmount;
    return { amount: from + this.#orders, content };
  }

  /** Returns why a need is not met, with the option that would meet it; undefined if it is met. */
  lacks(need: ServiceNeed): string | undefined {
    const [isMet, why] = NEEDS[need];
    return isMet(this.options) ? undefined : why;
  }
}

type Need = readonly [isMet: (options: ServiceOptions) => boolean, why: string];

const NEEDS = {
  sandbox: [({ sandbox }) => sandbox, 'the service is not a sandbox: leave --no-sandbox out where it is one'],
  'outside the sandbox': [
    ({ outside }) => outside !== undefined,
    'needs a service that is not a sandbox: give --no-sandbox with the address of one',
  ],
  'a box': [({ box }) => box !== undefined, 'needs a box that is linked to the account: give --box-code'],
  'a serial number': [
    ({ box }) => box?.serialNumber !== undefined && box.terminalCode !== undefined,
    'needs both codes of the box: give --box-code and --serial',
  ],
  'a box that is on': [
    ({ boxOn }) => boxOn !== undefined,
    'needs a box that shows what is pushed: give --box-code of one, without --box-secret-file',
  ],
  'a screen': [
    ({ boxOn, seeQr }) => boxOn !== undefined && seeQr !== undefined,
    'needs to see the screen of a box that is on: give --box-page beside --box-code',
  ],
  'a simulated box': [
    ({ boxSecret }) => boxSecret !== undefined,
    'needs a box that the bench can simulate: give --box-code, --serial and --box-secret-file',
  ],
  'another partner': [
    ({ second }) => second !== undefined,
    'needs a second partner: give --second-username and --second-password-file',
  ],
  'a partner without an endpoint': [
    ({ second, secondAccount }) => second !== undefined && secondAccount !== undefined,
    'needs an account of a second partner without an endpoint for callbacks: give --second-username, --second-password-file and --second-account',
  ],
  callbacks: [
    ({ listener, sandbox }) => listener !== undefined && sandbox,
    "needs the partner's endpoint at the bench, in the sandbox: give --callback-listen",
  ],
  'the authorization of callbacks': [
    ({ callbackAuth }) => callbackAuth !== undefined,
    'needs to know how callbacks are authorized: give --callback-auth-file',
  ],
  'signed callbacks': [
    ({ signingSecret }) => signingSecret !== undefined,
    'needs signed callbacks: give --callback-signing-secret-file',
  ],
  minutes: [({ slow }) => slow, 'takes minutes: give --slow'],
  guesses: [
    ({ guessPasswords }) => guessPasswords,
    'sends wrong passwords, which may shut the partner out: give --guess-passwords',
  ],
  'plain HTTP': [
    ({ access }) => access.baseUrl.startsWith('http:'),
    'needs a service without TLS: give an http:// address of it',
  ],
} as const satisfies Record<string, Need>;
