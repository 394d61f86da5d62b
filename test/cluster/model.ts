/*
 * `src/gateway/cluster/README.md` as a program: two gateways, a database, a box, a partner, one push and one payment.
 * A state says what each of them has stored and remembers. A rule is one step of one of them. `explore` walks all
 * states that any order of steps and faults can reach.
 *
 * Nothing in the model has a duration, so every hint may be late: what a hint says is in the rows, and the rules read
 * the rows at any time. Only with `polls: false` does a gateway need the hint to read them.
 */

/** A design without one of these parts is wrong. The test of the model proves that the model notices it. */
export interface Design {
  /** A new database session of a run is used only after it has found the run's own row, not gone. */
  checksItsRow: boolean;
  /** Burying ends the database sessions of the run. */
  endsSessions: boolean;
  /** A claim is one upsert. Otherwise it reads the lease first and writes it later. */
  claimsAtOnce: boolean;
  /** Rows are read again without a hint. */
  polls: boolean;
  /** The holder stores the report of a box before it answers the gateway that asked. */
  storesBeforeAnswer: boolean;
  /** A push that is failed is still unfinished in that transaction. */
  failsOnlyUnfinished: boolean;
  /** A payment has one row, whoever stores it. */
  hasUniqueKeys: boolean;
  /** A callback is recorded after the partner has received it. */
  recordsAfterSending: boolean;
}

export const DESIGN: Design = {
  checksItsRow: true,
  endsSessions: true,
  claimsAtOnce: true,
  polls: true,
  storesBeforeAnswer: true,
  failsOnlyUnfinished: true,
  hasUniqueKeys: true,
  recordsAfterSending: true,
};

/** What happens at most in one walk. */
export interface Bounds {
  push: boolean;
  payment: boolean;
  /** The payment has a callback. */
  callback: boolean;
  crashes: number;
  freezes: number;
  /** Answers of the database and messages to the box that are lost. */
  losses: number;
  /** A box changes its gateway although its session is alive. */
  moves: number;
}

/** `frozen` and `dead` may have one statement left at the server (`inFlight`). */
const PROCESS = { up: 0, frozen: 1, dead: 2 } as const;
/** The row of the run in `cluster.gateways`. `ended`: its database sessions are over, too. */
const ROW = { none: 0, lives: 1, gone: 2, ended: 3 } as const;
/** How far the session of the box at a gateway is. `read`: the lease was read, in a design that reads it first. */
const STAGE = { none: 0, hello: 1, read: 2, welcomed: 3 } as const;
const REPORT = { none: 0, shown: 1, paid: 2 } as const;
const PUSH = { none: 0, unfinished: 1, shown: 2, failed: 3 } as const;
/** The call of the partner at the first gateway. `confirmed`: the gateway knows that the QR is shown. */
const CALL = { none: 0, taken: 1, stored: 2, confirmed: 3, success: 4, error: 5 } as const;
const SCREEN = { idle: 0, qr: 1, paid: 2 } as const;
/** Messages on their way to the box, in their order. */
const WIRE = { none: 0, show: 1, withdraw: 2, showWithdraw: 3, withdrawShow: 4 } as const;
const NOTICE = { none: 0, due: 1, told: 2, reported: 3 } as const;
const CALLBACK = { none: 0, due: 1, recorded: 2 } as const;
const SENDING = { none: 0, read: 1, sent: 2 } as const;
/** A call of the source at a gateway. `new`: the payment was not found, in a design that reads it first. */
const CREDIT = { none: 0, taken: 1, new: 2 } as const;
/** Hints, as bits. */
const HINT = { session: 1, withdraw: 2, notice: 4, callback: 8 } as const;
/** The id of the newest session. `renumber` gives it a smaller one. */
const NEW_SESSION = 9;

interface Gateway {
  process: number;
  inFlight: number;
  row: number;
  /** The box's session that this gateway remembers, and what it has in hand. */
  session: number;
  stage: number;
  sawOther: number;
  report: number;
  sending: number;
  credit: number;
  hints: number;
  /** The session in its row of `cluster.box_sessions`; 0 without a row. */
  lease: number;
  /** It has the lease of the partner's callbacks. */
  queue: number;
  /** The question `push` is on its way to this gateway. */
  question: number;
}

export interface State {
  gateways: [Gateway, Gateway];
  push: number;
  payments: number;
  notice: number;
  callback: number;
  call: number;
  answer: number;
  /** The source has an answer. */
  isAcknowledged: number;
  /** How often the partner has received the callback; 2 stands for more. */
  received: number;
  boxSession: number;
  screen: number;
  /** The screen has had the QR. */
  hasShown: number;
  shownReport: number;
  paidReport: number;
  announced: number;
  wire: number;
  noticeOnWire: number;
  crashes: number;
  freezes: number;
  losses: number;
  moves: number;
}

interface Rule {
  name: string;
  /**
   * Who does it: a gateway in its memory (`step`) or by reading the database (`read`); a gateway by one transaction
   * (`write`); somebody else (`other`). A `fault` need not happen.
   */
  kind: 'step' | 'read' | 'write' | 'other' | 'fault';
  when(s: State, g: Gateway, other: Gateway): boolean;
  /** Of a write, what is committed. */
  does(s: State, g: Gateway, other: Gateway): void;
  /** Of a write, what the gateway does once it knows. */
  learn?(s: State, g: Gateway, other: Gateway): void;
}

function start({ crashes, freezes, losses, moves }: Bounds): State {
  const gateway = () => ({
    ...{ process: PROCESS.up, inFlight: 0, row: ROW.lives, session: 0, stage: STAGE.none, sawOther: 0, report: 0 },
    ...{ sending: 0, credit: 0, hints: 0, lease: 0, queue: 0, question: 0 },
  });
  return {
    gateways: [gateway(), gateway()],
    ...{ push: 0, payments: 0, notice: 0, callback: 0, call: 0, answer: 0, isAcknowledged: 0, received: 0 },
    ...{ boxSession: 0, screen: 0, hasShown: 0, shownReport: 0, paidReport: 0, announced: 0, wire: 0, noticeOnWire: 0 },
    ...{ crashes, freezes, losses, moves },
  };
}

const isUp = (g: Gateway) => g.process === PROCESS.up;
/** Whether this gateway speaks with the box: a message of another session is ignored. */
const speaks = (s: State, g: Gateway) => isUp(g) && g.session !== 0 && g.session === s.boxSession;
const isWelcomed = (s: State, g: Gateway) => speaks(s, g) && g.stage === STAGE.welcomed;
const mustLeave = (s: State) => s.push === PUSH.failed || s.payments > 0;

/** What a run remembers is lost with it. Its leases are not: they are rows. */
function forget(s: State, g: Gateway): void {
  g.process = PROCESS.dead;
  Object.assign(g, { inFlight: 0, session: 0, stage: 0, sawOther: 0, report: 0, sending: 0, credit: 0, hints: 0 });
  // The connection of the caller ends with the gateway that took the call.
  if (g === s.gateways[0] && s.call !== CALL.none && s.call < CALL.success) s.call = CALL.error;
}

function hint(s: State, what: number): void {
  for (const g of s.gateways) g.hints |= what;
}

function rulesOf(design: Design, bounds: Bounds): Rule[] {
  /** Whether a gateway reads these rows now. */
  const looks = (g: Gateway, what: number) => design.polls || (g.hints & what) !== 0;
  return [
    ...lives(design),
    ...sessions(design, looks),
    ...(bounds.push ? pushes(design, looks) : []),
    ...(bounds.payment ? payments(design, looks) : []),
    ...(bounds.callback ? callbacks(design, looks) : []),
  ];
}

type Looks = (g: Gateway, what: number) => boolean;

/** A run lives and dies. */
function lives({ endsSessions }: Design): Rule[] {
  // A second run of the name buries the first, as any other gateway does.
  const someoneBuries = (g: Gateway, other: Gateway) =>
    (isUp(other) && other.row === ROW.lives) || g.process === PROCESS.dead;
  return [
    {
      name: 'crashes',
      kind: 'fault',
      when: (s, g) => s.crashes > 0 && g.process !== PROCESS.dead,
      does: (s, g) => {
        s.crashes -= 1;
        g.process = PROCESS.dead;
        g.inFlight = 1;
      },
    },
    {
      name: 'freezes',
      kind: 'fault',
      when: (s, g) => s.freezes > 0 && isUp(g),
      does: (s, g) => {
        s.freezes -= 1;
        g.process = PROCESS.frozen;
        g.inFlight = 1;
      },
    },
    {
      name: 'wakes',
      kind: 'other',
      when: (_, g) => g.process === PROCESS.frozen,
      does: (_, g) => {
        g.process = PROCESS.up;
        g.inFlight = 0;
      },
    },
    {
      name: 'is undone by the server',
      kind: 'other',
      when: (_, g) => g.process === PROCESS.dead && g.inFlight === 1,
      does: (s, g) => forget(s, g),
    },
    {
      name: 'finds itself gone',
      kind: 'step',
      when: (_, g) => g.row !== ROW.lives,
      does: (s, g) => forget(s, g),
    },
    {
      name: 'is set gone',
      kind: 'other',
      when: (_, g, other) => g.row === ROW.lives && !isUp(g) && someoneBuries(g, other),
      does: (_, g) => {
        g.row = ROW.gone;
      },
    },
    {
      name: 'has its sessions ended',
      kind: 'other',
      when: (_, g, other) => g.row === ROW.gone && someoneBuries(g, other),
      does: (s, g) => {
        g.row = ROW.ended;
        if (!endsSessions) return;
        g.inFlight = 0;
        if (g.process === PROCESS.dead) forget(s, g);
      },
    },
    {
      name: 'loses its row',
      kind: 'other',
      when: (_, g, other) => g.row === ROW.ended && someoneBuries(g, other),
      does: (_, g) => {
        g.row = ROW.none;
        g.lease = 0;
        g.queue = 0;
      },
    },
    {
      name: 'starts',
      kind: 'other',
      when: (_, g) => g.process === PROCESS.dead && g.inFlight === 0 && g.row === ROW.none,
      does: (_, g) => {
        g.process = PROCESS.up;
        g.row = ROW.lives;
        // Questions go to a run, not to a name.
        g.question = 0;
      },
    },
  ];
}

/** A box belongs to the gateway to which it speaks. */
function sessions({ claimsAtOnce }: Design, looks: Looks): Rule[] {
  const hello = (s: State, g: Gateway) => {
    g.session = NEW_SESSION;
    g.stage = STAGE.hello;
    g.sawOther = 0;
    g.report = REPORT.none;
    s.boxSession = NEW_SESSION;
    s.wire = WIRE.none;
    s.noticeOnWire = 0;
  };
  const end = (g: Gateway) => {
    g.session = 0;
    g.stage = STAGE.none;
    g.report = REPORT.none;
  };
  return [
    {
      name: 'gets a hello',
      kind: 'other',
      when: (s, g, other) => isUp(g) && !speaks(s, g) && !speaks(s, other),
      does: hello,
    },
    {
      name: 'gets a hello of a box that speaks elsewhere',
      kind: 'fault',
      when: (s, g, other) => s.moves > 0 && isUp(g) && speaks(s, other),
      does: (s, g) => {
        s.moves -= 1;
        hello(s, g);
      },
    },
    {
      name: 'reads the lease',
      kind: 'read',
      when: (_, g) => !claimsAtOnce && g.stage === STAGE.hello,
      does: (_, g, other) => {
        g.stage = STAGE.read;
        g.sawOther = other.lease === 0 ? 0 : 1;
      },
    },
    {
      name: 'claims the box',
      kind: 'write',
      when: (_, g) => g.stage === (claimsAtOnce ? STAGE.hello : STAGE.read),
      does: (_, g, other) => {
        g.lease = g.session;
        if (claimsAtOnce || g.sawOther === 1) other.lease = 0;
        other.hints |= HINT.session;
      },
      learn: (_, g) => {
        g.stage = STAGE.welcomed;
        g.hints |= HINT.withdraw | HINT.notice;
      },
    },
    {
      name: 'finds that another has the box',
      kind: 'read',
      when: (_, g) => g.stage === STAGE.welcomed && g.lease !== g.session && looks(g, HINT.session),
      does: (_, g) => end(g),
    },
    {
      name: 'hears late of another session',
      kind: 'fault',
      when: (s, g) => s.losses > 0 && g.stage === STAGE.welcomed,
      does: (s, g) => {
        s.losses -= 1;
        end(g);
      },
    },
    {
      name: 'gives up a box that left',
      kind: 'write',
      when: (s, g) => g.stage === STAGE.welcomed && g.session !== s.boxSession,
      does: (_, g) => {
        if (g.lease === g.session) g.lease = 0;
      },
      learn: (_, g) => end(g),
    },
    {
      name: 'loses what is on its way to the box',
      kind: 'fault',
      when: (s, g) => s.losses > 0 && speaks(s, g) && s.wire + s.noticeOnWire > 0,
      does: (s) => {
        s.losses -= 1;
        s.wire = WIRE.none;
        s.noticeOnWire = 0;
      },
    },
    {
      name: 'misses its hints',
      kind: 'fault',
      when: (_, g) => g.hints !== 0 && !looks(g, 0),
      does: (_, g) => {
        g.hints = 0;
      },
    },
  ];
}

/** A push: the first gateway takes the call, either may be the holder. */
function pushes(design: Design, looks: Looks): Rule[] {
  const isAsker = (s: State, g: Gateway) => g === s.gateways[0];
  const fail = (s: State) => {
    if (s.push !== PUSH.unfinished) return;
    s.push = PUSH.failed;
    hint(s, HINT.withdraw);
  };
  return [
    {
      name: 'takes the call',
      kind: 'other',
      when: (s, g) => isAsker(s, g) && isUp(g) && s.call === CALL.none,
      does: (s) => {
        s.call = CALL.taken;
      },
    },
    {
      name: 'stores the push',
      kind: 'write',
      when: (s, g) => isAsker(s, g) && s.call === CALL.taken && s.push === PUSH.none,
      does: (s) => {
        s.push = PUSH.unfinished;
      },
      learn: (s) => {
        s.call = CALL.stored;
      },
    },
    {
      name: 'does not know whether the push is stored',
      kind: 'step',
      when: (s, g) => isAsker(s, g) && s.call === CALL.taken && s.push !== PUSH.none,
      does: (s) => {
        s.call = CALL.error;
      },
    },
    {
      name: 'asks the holder',
      kind: 'read',
      when: (s, g, other) => {
        if (!isAsker(s, g) || s.call !== CALL.stored || s.push !== PUSH.unfinished) return false;
        return [g, other].some((it) => it.lease !== 0 && it.question === 0);
      },
      does: (_, g, other) => {
        for (const it of [g, other]) if (it.lease !== 0) it.question = 1;
      },
    },
    {
      // The question stays on its way: it may be late, and it may be doubled.
      name: 'sends the push to the box',
      kind: 'step',
      when: (s, g) => g.question === 1 && isWelcomed(s, g) && (s.wire === WIRE.none || s.wire === WIRE.withdraw),
      does: (s) => {
        s.wire = s.wire === WIRE.none ? WIRE.show : WIRE.withdrawShow;
      },
    },
    {
      name: 'withdraws the push',
      kind: 'read',
      when: (s, g) => {
        if (!mustLeave(s) || !isWelcomed(s, g) || !looks(g, HINT.withdraw)) return false;
        return s.wire === WIRE.show || (s.wire === WIRE.none && s.screen === SCREEN.qr);
      },
      does: (s, g) => {
        s.wire = s.wire === WIRE.show ? WIRE.showWithdraw : WIRE.withdraw;
        g.hints &= ~HINT.withdraw;
      },
    },
    {
      name: 'reaches the box with a message about the push',
      kind: 'other',
      when: (s, g) => s.wire !== WIRE.none && g === s.gateways[0],
      does: (s) => {
        const shows = s.wire === WIRE.show || s.wire === WIRE.showWithdraw;
        s.wire = s.wire === WIRE.showWithdraw ? WIRE.withdraw : s.wire === WIRE.withdrawShow ? WIRE.show : WIRE.none;
        if (!shows) {
          if (s.screen === SCREEN.qr) s.screen = SCREEN.idle;
          return;
        }
        s.screen = SCREEN.qr;
        s.hasShown = 1;
        s.shownReport = 1;
      },
    },
    {
      name: 'receives the report that the QR is shown',
      kind: 'step',
      when: (s, g) => s.shownReport === 1 && isWelcomed(s, g) && g.report === REPORT.none,
      does: (s, g) => {
        g.report = REPORT.shown;
        if (!design.storesBeforeAnswer) s.answer = 1;
      },
    },
    {
      name: 'stores the report that the QR is shown',
      kind: 'write',
      when: (_, g) => g.report === REPORT.shown,
      does: (s) => {
        if (s.push === PUSH.unfinished) s.push = PUSH.shown;
      },
      learn: (s, g) => {
        g.report = REPORT.none;
        if (s.push === PUSH.shown) s.answer = 1;
        // A push that has failed is withdrawn at once.
        else g.hints |= HINT.withdraw;
        if (speaks(s, g)) s.shownReport = 0;
      },
    },
    {
      name: 'receives the answer',
      kind: 'step',
      when: (s, g) => isAsker(s, g) && s.call === CALL.stored && s.answer === 1,
      does: (s) => {
        s.call = CALL.confirmed;
      },
    },
    {
      name: 'reads the push',
      kind: 'read',
      when: (s, g) => isAsker(s, g) && design.polls && s.call === CALL.stored && s.push >= PUSH.shown,
      does: (s) => {
        s.call = s.push === PUSH.shown ? CALL.confirmed : CALL.error;
      },
    },
    {
      name: 'fails the push at its deadline',
      kind: 'write',
      when: (s, g) => isAsker(s, g) && s.call === CALL.stored,
      does: fail,
      learn: (s) => {
        s.call = s.push === PUSH.shown ? CALL.confirmed : CALL.error;
      },
    },
    {
      name: 'answers SUCCESS',
      kind: 'step',
      when: (s, g) => isAsker(s, g) && s.call === CALL.confirmed,
      does: (s) => {
        s.call = CALL.success;
      },
    },
    {
      // The work `stale pushes`, or the hello of the box.
      name: 'fails an unfinished push',
      kind: 'write',
      when: (s) => s.push === PUSH.unfinished || (!design.failsOnlyUnfinished && s.push === PUSH.shown),
      does: (s) => {
        s.push = PUSH.failed;
        hint(s, HINT.withdraw);
      },
    },
  ];
}

/** The money: either gateway takes it, or both. */
function payments(design: Design, looks: Looks): Rule[] {
  return [
    {
      name: 'takes the payment',
      kind: 'other',
      when: (s, g) => isUp(g) && s.isAcknowledged === 0 && g.credit === CREDIT.none,
      does: (_, g) => {
        g.credit = CREDIT.taken;
      },
    },
    {
      name: 'looks for the payment',
      kind: 'read',
      when: (_, g) => !design.hasUniqueKeys && g.credit === CREDIT.taken,
      does: (s, g) => {
        g.credit = s.payments === 0 ? CREDIT.new : CREDIT.none;
        if (s.payments > 0) s.isAcknowledged = 1;
      },
    },
    {
      name: 'stores the payment',
      kind: 'write',
      when: (_, g) => g.credit === (design.hasUniqueKeys ? CREDIT.taken : CREDIT.new),
      does: (s) => {
        if (design.hasUniqueKeys && s.payments > 0) return;
        s.payments += 1;
        s.notice = NOTICE.due;
        s.callback = CALLBACK.due;
        hint(s, HINT.notice | HINT.callback | HINT.withdraw);
      },
      learn: (s, g) => {
        g.credit = CREDIT.none;
        s.isAcknowledged = 1;
      },
    },
    {
      name: 'takes the notice',
      kind: 'write',
      when: (s, g) => {
        if (g.stage !== STAGE.welcomed || !looks(g, HINT.notice)) return false;
        if (s.notice === NOTICE.due) return true;
        // A notice that was told is sent again while the box has not reported it.
        const isUnderWay = s.noticeOnWire + s.paidReport > 0 || g.report === REPORT.paid;
        return s.notice === NOTICE.told && speaks(s, g) && !isUnderWay;
      },
      does: (s) => {
        s.notice = NOTICE.told;
      },
      learn: (s, g) => {
        if (speaks(s, g)) s.noticeOnWire = 1;
        g.hints &= ~HINT.notice;
      },
    },
    {
      name: 'reaches the box with the notice',
      kind: 'other',
      when: (s, g) => s.noticeOnWire === 1 && g === s.gateways[0],
      does: (s) => {
        s.noticeOnWire = 0;
        s.paidReport = 1;
        s.screen = SCREEN.paid;
        // The journal has the transactionId.
        s.announced = 1;
      },
    },
    {
      name: 'receives the report of the payment',
      kind: 'step',
      when: (s, g) => s.paidReport === 1 && isWelcomed(s, g) && g.report === REPORT.none,
      does: (_, g) => {
        g.report = REPORT.paid;
      },
    },
    {
      name: 'stores the report of the payment',
      kind: 'write',
      when: (_, g) => g.report === REPORT.paid,
      does: (s) => {
        s.notice = NOTICE.reported;
      },
      learn: (s, g) => {
        g.report = REPORT.none;
        if (speaks(s, g)) s.paidReport = 0;
      },
    },
  ];
}

/** The callback: one gateway at a time has the partner's queue. */
function callbacks({ recordsAfterSending }: Design, looks: Looks): Rule[] {
  const [beforeSend, beforeRecord] = recordsAfterSending ? [SENDING.read, SENDING.sent] : [SENDING.sent, SENDING.read];
  const next = (g: Gateway) => {
    g.sending = g.sending === SENDING.read ? SENDING.sent : SENDING.none;
  };
  return [
    {
      name: 'leases the callbacks of the partner',
      kind: 'write',
      when: (s, g, other) => s.callback === CALLBACK.due && g.queue + other.queue === 0 && looks(g, HINT.callback),
      does: (_, g) => {
        g.queue = 1;
      },
    },
    {
      name: 'reads the callback',
      kind: 'read',
      when: (s, g) => g.queue === 1 && s.callback === CALLBACK.due && g.sending === SENDING.none,
      does: (_, g) => {
        g.sending = SENDING.read;
      },
    },
    {
      name: 'sends the callback',
      kind: 'step',
      when: (_, g) => g.sending === beforeSend,
      does: (s, g) => {
        s.received = Math.min(s.received + 1, 2);
        next(g);
      },
    },
    {
      name: 'records the callback',
      kind: 'write',
      when: (_, g) => g.sending === beforeRecord,
      does: (s) => {
        s.callback = CALLBACK.recorded;
      },
      learn: (_, g) => next(g),
    },
  ];
}

/** Returns the rule of the README that a state breaks. */
function brokenBy(s: State): string | undefined {
  const [first, second] = s.gateways;
  if (s.call === CALL.success && s.push !== PUSH.shown) return 'SUCCESS, and the row does not say shown';
  if (s.call === CALL.success && s.hasShown === 0) return 'SUCCESS without a QR';
  if (s.push === PUSH.shown && s.hasShown === 0) return 'the row says shown without a QR';
  if (s.hasShown === 1 && s.push === PUSH.none) return 'a QR of no push';
  if (first.lease !== 0 && second.lease !== 0) return 'two gateways have the lease of one box';
  if (first.queue + second.queue > 1) return 'two gateways have the callbacks of one partner';
  if (s.payments > 1) return 'two rows of one payment';
  if (s.announced === 1 && s.payments === 0) return 'a payment is announced and not stored';
  if (s.notice === NOTICE.reported && s.announced === 0) return 'a notice is reported and was not announced';
  if (s.callback === CALLBACK.recorded && s.received === 0) return 'a callback is recorded and was not received';
  if (s.isAcknowledged === 1 && s.payments === 0) return 'a payment is acknowledged and not stored';
  return undefined;
}

/** Whether everybody has what is due to him, and nothing is left that should not be. */
function isGood(s: State, { push, payment, callback }: Bounds): boolean {
  const holder = s.gateways.find((g) => isWelcomed(s, g));
  if (holder === undefined || holder.lease !== holder.session) return false;
  if (s.gateways.some((g) => !isUp(g) || g.row !== ROW.lives)) return false;
  if (push && (s.call < CALL.success || s.push === PUSH.unfinished || s.shownReport === 1)) return false;
  if (s.screen === SCREEN.qr && mustLeave(s)) return false;
  if (callback && s.callback !== CALLBACK.recorded) return false;
  if (!payment) return true;
  if (s.isAcknowledged === 0 || s.announced === 0 || s.notice !== NOTICE.reported || s.paidReport === 1) return false;
  return true;
}

/** Whether a gateway can use the database: by a session from before the burial, or by a new one. */
function reachesDatabase(g: Gateway, { checksItsRow, endsSessions }: Design): boolean {
  const hasSessions = g.row === ROW.lives || g.row === ROW.gone || !endsSessions;
  return hasSessions || (isUp(g) && !checksItsRow);
}

/** What follows from one rule at one gateway: each outcome with whether it is a fault. */
function outcomes(rule: Rule, s: State, at: number, design: Design): { s: State; isFault: boolean; isLate: boolean }[] {
  const [mine, others] = at === 0 ? s.gateways : [s.gateways[1], s.gateways[0]];
  const isWrite = rule.kind === 'write';
  if ((rule.kind === 'step' || rule.kind === 'read') && !isUp(mine)) return [];
  if ((rule.kind === 'read' || isWrite) && !reachesDatabase(mine, design)) return [];
  if (isWrite && !isUp(mine) && mine.inFlight === 0) return [];
  if (!rule.when(s, mine, others)) return [];
  const after = (change: (next: State, g: Gateway, other: Gateway) => void) => {
    const next: State = { ...s, gateways: [{ ...s.gateways[0] }, { ...s.gateways[1] }] };
    const [g, other] = at === 0 ? next.gateways : [next.gateways[1], next.gateways[0]];
    change(next, g, other);
    return next;
  };
  if (!isWrite) return [{ s: after(rule.does), isFault: rule.kind === 'fault', isLate: false }];
  const isLate = mine.row === ROW.none;
  const whole = after((next, g, other) => {
    rule.does(next, g, other);
    g.inFlight = 0;
    if (g.process === PROCESS.dead) forget(next, g);
    else rule.learn?.(next, g, other);
  });
  if (!isUp(mine) || s.losses === 0) return [{ s: whole, isFault: false, isLate }];
  // The connection breaks after the commit, so the gateway never knows.
  const unlearned = after((next, g, other) => {
    next.losses -= 1;
    rule.does(next, g, other);
  });
  return [
    { s: whole, isFault: false, isLate },
    { s: unlearned, isFault: true, isLate },
  ];
}

/** Names sessions by their order in the state, so that states which differ in names alone are one. */
function renumber(s: State): void {
  const [first, second] = s.gateways;
  const names = [0];
  const named = (session: number) => {
    const known = names.indexOf(session);
    return known >= 0 ? known : names.push(session) - 1;
  };
  s.boxSession = named(s.boxSession);
  first.session = named(first.session);
  second.session = named(second.session);
  first.lease = named(first.lease);
  second.lease = named(second.lease);
}

function keyOf(s: State): string {
  const of = (g: Gateway) => [
    g.process + 3 * g.inFlight + 6 * g.row + 24 * g.stage + 96 * g.sawOther + 192 * g.report + 576 * g.question,
    g.session + 6 * g.lease + 36 * g.sending + 108 * g.credit + 324 * g.hints + 5_184 * g.queue,
  ];
  return String.fromCharCode(
    ...of(s.gateways[0]),
    ...of(s.gateways[1]),
    s.push + 4 * s.payments + 12 * s.notice + 48 * s.callback + 144 * s.call + 864 * s.answer + 1_728 * s.received,
    s.boxSession + 6 * s.screen + 18 * s.hasShown + 36 * s.shownReport + 72 * s.paidReport + 144 * s.announced,
    s.wire + 5 * s.noticeOnWire + 10 * s.isAcknowledged,
    s.crashes + 4 * s.freezes + 16 * s.losses + 64 * s.moves,
  );
}

export interface Walk {
  states: number;
  steps: number;
  /** What is wrong, and the steps that lead there. */
  violation: { broken: string; path: string[] } | undefined;
}

/**
 * Walks every state that is reachable within the bounds. Each must break no rule. From each, a continuation without
 * further faults must lead to an end at which everybody has what is due to him.
 */
export function explore(design: Design, bounds: Bounds): Walk {
  const rules = rulesOf(design, bounds);
  const indexes = new Map<string, number>();
  const parents: number[] = [];
  const causes: string[] = [];
  const good: number[] = [];
  /** Steps that are no faults, as pairs: from, to. */
  const steps: number[] = [];
  const enter = (s: State, parent: number, cause: string): { index: number; isNew: boolean } => {
    renumber(s);
    const key = keyOf(s);
    const known = indexes.get(key);
    if (known !== undefined) return { index: known, isNew: false };
    const index = parents.length;
    indexes.set(key, index);
    parents.push(parent);
    causes.push(cause);
    if (isGood(s, bounds)) good.push(index);
    return { index, isNew: true };
  };
  const pathTo = (index: number): string[] => {
    const path: string[] = [];
    for (let at = index; at > 0; at = parents[at] ?? 0) path.push(causes[at] ?? '');
    return path.reverse();
  };
  const walked = (violation?: Walk['violation']): Walk => ({
    states: parents.length,
    steps: steps.length / 2,
    violation,
  });

  let frontier = [start(bounds)];
  let from = 0;
  for (const s of frontier) enter(s, 0, '');
  while (frontier.length > 0) {
    const next: State[] = [];
    for (const s of frontier) {
      for (const rule of rules) {
        for (const at of [0, 1]) {
          for (const outcome of outcomes(rule, s, at, design)) {
            const cause = `gateway ${at + 1} ${rule.name}${outcome.isFault && rule.kind === 'write' ? ', unheard' : ''}`;
            const { index, isNew } = enter(outcome.s, from, cause);
            const broken = outcome.isLate ? 'a write of a run that was buried' : brokenBy(outcome.s);
            if (broken !== undefined) return walked({ broken, path: [...pathTo(from), cause] });
            if (isNew) next.push(outcome.s);
            if (!outcome.isFault) steps.push(from, index);
          }
        }
      }
      from += 1;
    }
    frontier = next;
  }
  const stuck = firstStuck(parents.length, steps, good);
  return walked(stuck === undefined ? undefined : { broken: 'it never ends well', path: pathTo(stuck) });
}

/** Returns the first state from which no steps lead to a good one. */
function firstStuck(states: number, steps: readonly number[], good: readonly number[]): number | undefined {
  // The steps that lead to each state, as lists in one array.
  const begins = new Int32Array(states + 1);
  for (let i = 1; i < steps.length; i += 2) begins[(steps[i] ?? 0) + 1] = (begins[(steps[i] ?? 0) + 1] ?? 0) + 1;
  for (let i = 0; i < states; i += 1) begins[i + 1] = (begins[i + 1] ?? 0) + (begins[i] ?? 0);
  const ends = begins.slice();
  const origins = new Int32Array(steps.length / 2);
  for (let i = 0; i < steps.length; i += 2) {
    const to = steps[i + 1] ?? 0;
    const place = ends[to] ?? 0;
    origins[place] = steps[i] ?? 0;
    ends[to] = place + 1;
  }
  const endsWell = new Uint8Array(states);
  const open = [...good];
  for (const index of open) endsWell[index] = 1;
  for (let index = open.pop(); index !== undefined; index = open.pop()) {
    for (let i = begins[index] ?? 0; i < (begins[index + 1] ?? 0); i += 1) {
      const origin = origins[i] ?? 0;
      if (endsWell[origin] === 1) continue;
      endsWell[origin] = 1;
      open.push(origin);
    }
  }
  const found = endsWell.indexOf(0);
  return found < 0 ? undefined : found;
}
