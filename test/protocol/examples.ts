import type { DownMessage, DownOf, Presence, UpMessage, UpOf } from '../../src/protocol/messages.ts';

const sessionId = '0a3c1d52-8d6b-4b7e-8f0e-5d2f1c7b9a02';
const head = { v: 1, id: '6f1f2b8e-3a55-4c0f-9d54-0a4c4f6c1a01', sentAtMs: 1_721_372_634_000, sessionId } as const;
const pushId = 'b7e0c6a4-2f3d-4a19-8c5b-7e6d5f4a3b03';
const transactionId = 'c4d5e6f7-1a2b-4c3d-9e8f-0a1b2c3d4e04';
const link = { bankAccount: '0123456789', bankCode: 'MB', userBankName: 'NGUYEN VAN A' };

/** One legal message of every type to a box. */
export const DOWN: { [T in DownMessage['type']]: DownOf<T> } = {
  welcome: { ...head, type: 'welcome', link, openPushIds: [pushId], mode: 'sandbox', sandboxMark: true },
  refused: { ...head, type: 'refused', code: 'SUPERSEDED', reason: 'another agent has this identity' },
  show: {
    ...head,
    type: 'show',
    pushId,
    orderId: 'DH001',
    amount: 50_000,
    content: 'Cà phê sữa đá',
    ...link,
    qrCode: '000201',
    expiresAtMs: 1_721_372_934_000,
    expiresInMs: 300_000,
    sessionMs: 1_500,
  },
  withdraw: { ...head, type: 'withdraw', pushId, why: 'timeout' },
  payment: {
    ...head,
    type: 'payment',
    transactionId,
    pushId,
    orderId: 'DH001',
    amount: 50_000,
    content: 'DH001',
    bankAccount: link.bankAccount,
    bankCode: link.bankCode,
    paidAtMs: 1_721_372_634_000,
    repeated: false,
    late: false,
    due: { amount: 70_000, paid: 50_000 },
  },
  ack: { ...head, type: 'ack', reportIds: [pushId, transactionId] },
  heard: { ...head, type: 'heard', aliveId: pushId },
};

/** One legal message of every type from a box. */
export const UP: { [T in UpMessage['type']]: UpOf<T> } = {
  hello: {
    ...head,
    type: 'hello',
    terminalCode: 'VVB000001',
    serialNumber: 'VVB900001',
    agentVersion: '0.1.0',
    display: 'emulator',
    shownPushId: pushId,
  },
  accepted: { ...head, type: 'accepted', pushId },
  shown: { ...head, type: 'shown', pushId },
  rejected: { ...head, type: 'rejected', pushId, code: 'QR_TOO_DENSE', reason: '61 modules on 128 pixels' },
  ended: { ...head, type: 'ended', pushId, orderId: 'DH001', how: 'expired' },
  paid: { ...head, type: 'paid', transactionId, orderId: 'DH001', amount: 50_000, recorded: true },
  alive: { ...head, type: 'alive' },
};

export const PRESENCE: Presence = { v: 1, online: true, sessionId };
