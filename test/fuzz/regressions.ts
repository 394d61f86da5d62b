const text = (value: string) => Buffer.from(value);

/** Inputs that broke a property once, by the name of their target; they are always fed first. */
export const REGRESSIONS: Readonly<Record<string, readonly Buffer[]>> = {
  // Names of fields that every object has.
  generate: [text('{"__proto__":" "}'), text('{"constructor":1}')],
  nextion: [Buffer.from('0b0103ffffff0003ffffff', 'hex')],
  'hostile gateway': [
    text(
      JSON.stringify({
        ...{
          v: 1,
          id: '00000000-0000-4000-8000-000000000001',
          sentAtMs: 1,
          sessionId: '',
          type: 'payment',
          pushId: null,
        },
        ...{
          transactionId: '00000000-0000-4000-8000-000000000002',
          orderId: '',
          amount: 1,
          content: '',
          bankAccount: 'X',
        },
        ...{ bankCode: 'MB', paidAtMs: 9_007_199_254_740_951 },
      }),
    ),
  ],
  'child of a display': [text('Segmentation fault\n'), text('{"ok":false}\n'), text('[]\n')],
  'answer to a callback': [text('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nabc')],
  'event stream': [text('HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\nconnection: upgrade\r\n\r\nabc')],
  'agent configuration': [
    text('- '.repeat(4_000)),
    text('['.repeat(20_000)),
    text('a: *nobody'),
    text('!!binary aGk='),
    text('box: {}'),
  ],
};
