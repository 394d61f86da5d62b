import { isObject } from '../../protocol/codec.ts';
import { type TransactionSync, transactionSync } from '../../protocol/http-api.ts';
import type { CallbackConfig } from '../config/callback-config.ts';

/** The keys that older documentation of the public service writes in camelCase. */
const CAMEL = {
  transactionid: 'transactionId',
  transactiontime: 'transactionTime',
  referencenumber: 'referenceNumber',
  bankaccount: 'bankAccount',
} as const;

/** Writes a callback in the form that its partner reads (PROTOCOL.md, clause SYN-10). */
export function callbackBody(payment: TransactionSync, { payload, decimals }: CallbackConfig): string {
  const fields = Object.entries(payment).map(([key, value]): [string, string] => {
    const text = decimals && key === 'amount' ? `${value}.0` : String(value);
    const isNumber = typeof value === 'number' && payload !== 'strings';
    return [payload === 'camel' ? camelOf(key) : key, isNumber ? text : JSON.stringify(text)];
  });
  return `{${fields.map(([key, json]) => `${JSON.stringify(key)}:${json}`).join(',')}}`;
}

/** Reads the payment in a callback of any form. Returns undefined if it cannot be read. */
export function paymentOf(body: unknown): TransactionSync | undefined {
  if (!isObject(body)) return undefined;
  const fields = Object.keys(transactionSync.shape).map((key): [string, unknown] => {
    const value = body[camelOf(key)] ?? body[key];
    const isNumber = key === 'amount' || key === 'transactiontime';
    return [key, isNumber && typeof value === 'string' ? Number(value) : value];
  });
  return transactionSync.safeParse(Object.fromEntries(fields)).data;
}

function camelOf(key: string): string {
  return Object.entries(CAMEL).find(([name]) => name === key)?.[1] ?? key;
}
