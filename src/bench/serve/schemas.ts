import { z } from 'zod';
import { durationMs } from '../scenarios/durations.ts';
import { duration, name, value } from '../scenarios/values.ts';

/** The limits of the server, which refuses requests beyond them. */
export const LIMITS = {
  bodyBytes: 1_000_000,
  scenarios: 100,
  /** The number of runs that wait for the current one. */
  runsQueued: 20,
  /** The number of finished runs that the server stores with their transcripts, newest first. */
  runsKept: 20,
  /** The total size of the pictures of finished runs. */
  pictureBytesKept: 256_000_000,
  /** The number of events of a run. Beyond this the server drops the oldest. */
  events: 5_000,
  streams: 64,
  /** The number of entries of a rig's transcript. Beyond this the server leaves out messages. */
  entries: 20_000,
  rigs: 4,
  /** The number of rigs of a program that started the server for itself, one for each of its running tests. */
  rigsOfOwner: 64,
  rigBoxes: 50,
  /** The number of steps of a rig that wait for the current one. */
  stepsWaiting: 16,
  /** The number of a rig's first failures that the server stores, and of newest callbacks that it returns. */
  failures: 1_000,
  callbacks: 1_000,
  /** The number of ended rigs whose reason the server remembers. */
  rigsRemembered: 100,
  idleMs: 24 * 3_600_000,
  textChars: 2_000,
} as const;

/** A rig ends after this idle time by default. */
export const IDLE = '10min';

const text = z.string().min(1).max(LIMITS.textChars);

const choice = {
  target: text
    .optional()
    .describe('emulated, process, or at: a running gateway and boxes (default with a gateway)')
    .meta({ enum: ['emulated', 'process', 'at'] }),
  transport: text.optional().describe('how boxes that the bench starts connect to their gateway; mqtt if left out'),
  dialect: text.optional().describe('vietqr: gateway and boxes that the bench starts speak the public MQTT dialect'),
  probe: text.default('screen').describe('where screens are seen: screen, or a probe that the server was started with'),
  seed: z.int().min(1).max(999_999_999).optional().describe('repeats the same random choices; random if left out'),
  gateway: text.optional().describe('origin of a running gateway, as http://127.0.0.1:8800'),
  box: z.array(text).max(LIMITS.rigBoxes).default([]).describe('origins of the pages of running boxes'),
  username: text.optional().describe("the partner's user name; the gateway tells if left out"),
  password: text.optional(),
  account: text.optional().describe('bank account'),
  bank: text.optional().describe('bank code'),
  holder: text.optional().describe('account holder'),
  adminToken: text.optional().describe("the gateway's"),
  boxToken: text.optional().describe('http.token of the running boxes'),
};

const scenario = z.union(
  [
    text.describe('a name from GET /scenarios'),
    z.strictObject({
      yaml: z.string().min(1).max(200_000).describe('a scenario file'),
      file: z
        .string()
        .regex(/^[\w.-]{1,80}$/, 'expected a file name without a folder')
        .default('scenario.yaml')
        .describe('what messages call it'),
    }),
  ],
  { error: 'expected the name of a scenario or { "yaml": TEXT }' },
);

export const runRequest = z
  .strictObject({
    scenarios: z.array(scenario).min(1).max(LIMITS.scenarios).describe('one after the other'),
    boxes: z.int().min(1).max(1_000).optional().describe('at least this many boxes, for a fleet'),
    variables: z.record(name, value).default({}).describe('instead of those in the scenarios'),
    ...choice,
  })
  .meta({ id: 'RunRequest' });

export const rigRequest = z
  .strictObject({
    ...choice,
    target: choice.target.describe(
      'process (default): separate programs in real time; emulated: in this process, waits are skipped; at: a running gateway and boxes',
    ),
    time: z
      .literal('shared', 'expected shared')
      .optional()
      .describe(
        'shared: emulated boxes in real time, of which only a `wait` skips some, so that programs of your own can take part',
      ),
    boxes: z.int().min(1).max(LIMITS.rigBoxes).optional().describe('how many; 1 if left out'),
    enrolled: z.boolean().default(true).describe('false: the boxes start without a secret'),
    variables: z.record(name, value).default({}).describe('as in a scenario file'),
    callbackUrl: z
      .url({ protocol: /^https?$/, error: 'expected an address, as http://127.0.0.1:3000/bank/api/transaction-sync' })
      .optional()
      .describe('where callbacks go, without authorization; to a server of the bench if left out'),
    idle: duration
      .refine((it) => (durationMs(it) ?? 0) <= LIMITS.idleMs, 'expected 24h at most')
      .default(IDLE)
      .describe('ends after this time without a request'),
  })
  .meta({ id: 'RigRequest' });

/** The target options of a run or rig. */
export type TargetChoice = Omit<z.output<typeof runRequest>, 'scenarios' | 'seed' | 'variables'> &
  Pick<RigRequest, 'time'>;
export type RigRequest = z.output<typeof rigRequest>;

const ms = z.number().min(0).describe('milliseconds');
const wall = z.string().describe('ISO 8601');
const OUTCOMES = ['passed', 'failed', 'skipped', 'missing'] as const;

export const failure = z
  .strictObject({ error: z.string(), fix: z.string().describe('what to do about it; may be empty') })
  .meta({ id: 'Failure' });

export const scenarioList = z
  .strictObject({
    scenarios: z.array(
      z.strictObject({
        name: z.string().describe('what POST /runs takes'),
        title: z.string(),
        about: z.string(),
        boxes: z.int(),
        needs: z.array(z.string()).describe('capabilities that a target needs'),
      }),
    ),
  })
  .meta({ id: 'ScenarioList' });

const runState = z.enum(['queued', 'running', ...OUTCOMES, 'aborted']);

export const runView = z
  .strictObject({
    id: z.string(),
    state: runState.describe('failed if a scenario failed, else missing if a scenario lacked something it needs'),
    target: z.string(),
    seed: z.int(),
    createdAt: wall,
    tookMs: ms.nullable().describe('milliseconds since it began; null before'),
    step: z.string().nullable().describe('the current step'),
    reason: z.string().describe('reason of the first scenario that has not passed; empty if all passed'),
    where: z.string().nullable().describe('the step of it, as happy-path.yaml:12'),
    scenarios: z.array(
      z.strictObject({
        name: z.string(),
        file: z.string(),
        state: runState,
        reason: z.string(),
        where: z.string().nullable(),
        tookMs: ms.nullable(),
      }),
    ),
    links: z.strictObject({
      self: z.string(),
      events: z.string(),
      junit: z.string().describe('once it is over, as tap and report'),
      tap: z.string(),
      report: z.string(),
    }),
  })
  .meta({ id: 'Run' });

export const runList = z.strictObject({ runs: z.array(runView) }).meta({ id: 'RunList' });

export const rigView = z
  .strictObject({
    id: z.string(),
    target: z.string(),
    seed: z.int(),
    gateway: z.strictObject({
      origin: z.string(),
      baseUrl: z.string().describe('{base_url} of the service'),
    }),
    partner: z.strictObject({ username: z.string(), password: z.string() }),
    account: z.strictObject({ bankAccount: z.string(), bankCode: z.string(), userBankName: z.string() }),
    boxes: z.array(
      z.strictObject({
        number: z.int().describe('number in steps and addresses, from 1'),
        terminalCode: z.string(),
        serialNumber: z.string(),
        url: z.string().describe('origin of its pages'),
        screen: z.string(),
        status: z.string(),
      }),
    ),
    callbackUrl: z.string().nullable().describe('where callbacks go; null for a gateway that ran already'),
    idleMs: ms,
    steps: z.int().describe('how many were run'),
    failures: z.int().describe('how many of them failed'),
    links: z.strictObject({ self: z.string(), steps: z.string(), callbacks: z.string(), report: z.string() }),
  })
  .meta({ id: 'Rig' });

export const rigList = z.strictObject({ rigs: z.array(rigView) }).meta({ id: 'RigList' });

export const stepAnswer = z
  .strictObject({
    number: z.int().describe('counts the steps of the rig from 1 on'),
    result: z
      .record(z.string(), z.unknown())
      .nullable()
      .describe('the variable of its verb from now on, for example orderId and qrCode of a push; null without'),
    tookMs: ms,
  })
  .meta({ id: 'StepAnswer' });

export const callbackList = z
  .strictObject({
    callbacks: z
      .array(z.looseObject({ transactionId: z.string(), status: z.string() }))
      .describe('as the gateway lists them'),
    received: z
      .array(
        z.strictObject({
          transactionId: z.string().nullable(),
          body: z.string(),
          answered: z.union([z.string(), z.int()]),
        }),
      )
      .nullable()
      .describe("what the bench's server of the partner received; null when the bench runs none"),
  })
  .meta({ id: 'CallbackList' });
