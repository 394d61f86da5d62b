import type { FaultName } from '../../protocol/faults.ts';
import type { Directory } from '../directory.ts';
import { createReceivePayment, type IncomingMoney, type ReceivePayment, type ReceivePaymentDeps } from '../pay.ts';
import type { Faults } from './faults.ts';
import { OTHER_CONTENT, otherAmount } from './other-money.ts';
import type { LatePayments } from './told-late.ts';

/** Payments with the faults of this place: each is kept and told once, as the money that it is (PROTOCOL.md, clause FLT-7). */
export function payWithFaults(deps: ReceivePaymentDeps & { faults: Faults; toldLate: LatePayments }): ReceivePayment {
  const { faults, directory } = deps;
  const pay = createReceivePayment(deps);
  return async (asked) => {
    const { money } = asked;
    const boxes = directory.boxesOf(money.bank_account).map((it) => it.terminalCode);
    const subject = { boxes, content: money.content };
    const happening = (fault: FaultName) => faults.take(fault, subject);
    let paying = asked;
    if (happening('wrong-amount')) paying = withMoney(paying, { amount: otherAmount(money.amount) });
    if (happening('wrong-content')) paying = withMoney(paying, { content: OTHER_CONTENT });
    if (happening('wrong-account')) paying = toOtherAccount(paying, directory);
    if (happening('paid-twice')) await pay(paying);
    const late = faults.delay('paid-late', subject);
    if (late === undefined) return pay(paying);
    const over = late.delayed((late.seconds ?? 0) * 1000);
    const { bank_account: bankAccount, content, amount } = paying.money;
    deps.toldLate.add({ bankAccount, content, amount }, over);
    return createReceivePayment(tellingAfter(over, deps))(paying);
  };
}

/** The money is other than asked for, so that it pays whatever it fits. */
function withMoney({ money, bankCode }: IncomingMoney, change: Partial<IncomingMoney['money']>): IncomingMoney {
  const { partner, bank_account, content, amount, trans_type } = money;
  const other = { partner, bank_account, content, amount, trans_type, ...change };
  return { money: other, bankCode, pays: other };
}

/** To another account of the same partner; where there is none, to no order. */
function toOtherAccount(paying: IncomingMoney, directory: Directory): IncomingMoney {
  const { partner, bank_account } = paying.money;
  const other = directory.partner(partner)?.accounts.find((it) => it !== bank_account);
  const account = other === undefined ? undefined : directory.account(other);
  if (account === undefined) return { ...paying, pays: { orderRef: '' } };
  return { ...withMoney(paying, { bank_account: account.bankAccount }), bankCode: account.bankCode };
}

/** Boxes and the partner are told as ever, but late; a restart meanwhile loses nothing, as the store has it. */
function tellingAfter(over: Promise<unknown>, deps: ReceivePaymentDeps): ReceivePaymentDeps {
  const { hub, dispatcher } = deps;
  const later = (tell: () => void) => void over.then(tell);
  return {
    ...deps,
    hub: {
      session: (terminalCode) => hub.session(terminalCode),
      sendPayment: (...args) => later(() => hub.sendPayment(...args)),
      resendFromStore: (...args) => later(() => hub.resendFromStore(...args)),
      withdrawPush: (...args) => later(() => hub.withdrawPush(...args)),
    },
    dispatcher: { wake: (partner) => later(() => dispatcher.wake(partner)) },
  };
}
