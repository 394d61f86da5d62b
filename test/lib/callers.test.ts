import type { IncomingMessage } from 'node:http';
import { describe, expect, it } from 'vitest';
import { Callers, isNetwork } from '../../src/lib/callers.ts';
import { readProxyHeader } from '../../src/lib/proxy-protocol.ts';
import { proxyV2 } from '../support/callers.ts';

const asked = (remoteAddress: string, forwarded?: string) =>
  ({
    socket: { remoteAddress, remotePort: 1 },
    headers: forwarded === undefined ? {} : { 'x-forwarded-for': forwarded },
  }) as unknown as IncomingMessage;

describe('the caller of a request', () => {
  const callers = new Callers(['10.0.0.1', '10.1.0.0/16', '2001:db8:ff::/48']);

  it.each<[what: string, from: string, forwarded: string | undefined, expected: string | undefined]>([
    ['a stranger is himself', '192.0.2.1', undefined, undefined],
    ['a stranger names nobody', '192.0.2.1', '198.51.100.9', undefined],
    ['a trusted proxy names him', '10.0.0.1', '198.51.100.9', '198.51.100.9'],
    ['what he sent himself does not count', '10.0.0.1', '127.0.0.1, 10.0.0.1, 198.51.100.9', '198.51.100.9'],
    ['behind several proxies', '10.0.0.1', '1.1.1.1, 198.51.100.9, 10.1.2.3, 2001:db8:ff::5', '198.51.100.9'],
    ['all of them trusted: the farthest', '10.0.0.1', '10.1.0.1, 10.1.0.2', '10.1.0.1'],
    ['with a port', '10.0.0.1', '198.51.100.9:4711', '198.51.100.9'],
    ['of IPv6', '10.0.0.1', '2001:db8::9', '2001:db8::9'],
    ['of IPv6 in brackets', '10.0.0.1', '[2001:db8::9]:443', '2001:db8::9'],
    ['over IPv6 sockets', '::ffff:10.0.0.1', '198.51.100.9', '198.51.100.9'],
    ['a proxy of a network', '2001:db8:ff:1::1', '198.51.100.9', '198.51.100.9'],
    ['a proxy that says nothing stands for him', '10.0.0.1', undefined, '10.0.0.1'],
    ['what is no address stands for nobody', '10.0.0.1', '198.51.100.9, unknown', '10.0.0.1'],
    ['nor what follows a proxy that is lost', '10.0.0.1', '198.51.100.9, _hidden, 10.1.0.2', '10.1.0.2'],
    ['an empty entry', '10.0.0.1', '198.51.100.9,', '10.0.0.1'],
    ['numbers that are no address', '10.0.0.1', '198.51.100.999', '10.0.0.1'],
    ['a connection that has ended', '', '198.51.100.9', undefined],
  ])('LIM-8 THR-35 %s', (_what, from, forwarded, expected) => {
    expect(callers.ofPassedOn(asked(from, forwarded))).toBe(expected);
  });

  it('LIM-8 is nobody else where no proxy is trusted', () => {
    expect(new Callers().ofPassedOn(asked('127.0.0.1', '198.51.100.9'))).toBeUndefined();
  });

  it.each([
    ['10.0.0.1', true],
    ['10.0.0.0/8', true],
    ['2001:db8::/32', true],
    ['::1', true],
    ['10.0.0.0/0', false],
    ['::/0', false],
    ['10.0.0.0/33', false],
    ['2001:db8::/129', false],
    ['10.0.0.0/8/8', false],
    ['10.0.0', false],
    ['proxy.example', false],
    ['fe80::1%eth0', false],
    ['10.0.0.1:80', false],
    ['', false],
  ])('LIM-8 %s is a proxy or a network: %s', (text, expected) => {
    expect(isNetwork(text)).toBe(expected);
  });
});

describe('a PROXY header', () => {
  const tlv = Buffer.from('0400024142', 'hex');

  it.each<[what: string, header: Buffer, caller: string | undefined]>([
    ['of IPv4', proxyV2({ source: '198.51.100.9' }), '198.51.100.9'],
    ['of IPv6', proxyV2({ source: '2001:db8:0:0:0:0:0:9' }), '2001:db8::9'],
    ['with more behind the addresses', proxyV2({ source: '198.51.100.9', extra: tlv }), '198.51.100.9'],
    ['of the proxy itself', proxyV2({ command: 0x20 }), undefined],
    ['of the proxy itself, with addresses', proxyV2({ command: 0x20, source: '198.51.100.9' }), undefined],
  ])('LIM-9 %s is read to its end, however it comes', (_what, header, caller) => {
    for (let length = 0; length < header.length; length += 1) {
      expect(readProxyHeader(header.subarray(0, length))).toBeUndefined();
    }
    expect(readProxyHeader(header)).toEqual({ bytes: header.length, caller });
    const more = Buffer.concat([header, Buffer.from('GET / HTTP/1.1\r\n')]);
    expect(readProxyHeader(more)).toEqual({ bytes: header.length, caller });
  });

  it.each<[what: string, bytes: Buffer, problem: RegExp]>([
    ['HTTP', Buffer.from('GET / HTTP/1.1\r\nHost: x\r\n\r\n'), /expected the signature/],
    ['version 1', Buffer.from('PROXY TCP4 198.51.100.9 127.0.0.1 1 2\r\n'), /expected the signature/],
    ['a TLS handshake', Buffer.from('160301', 'hex'), /expected the signature/],
    ['a signature with one wrong byte', proxyV2({ source: '1.2.3.4' }).fill(0x0a, 4, 5), /expected the signature/],
    ['another version', proxyV2({ command: 0x11, source: '1.2.3.4' }), /not 0x11/],
    ['another command', proxyV2({ command: 0x22, source: '1.2.3.4' }), /not 0x22/],
    ['UDP', proxyV2({ family: 0x12, source: '1.2.3.4' }), /expected TCP over IPv4 or IPv6, not 0x12/],
    ['a Unix socket', proxyV2({ family: 0x31, addresses: Buffer.alloc(216) }), /not 0x31/],
    ['no family', proxyV2({ family: 0, source: '1.2.3.4' }), /not 0x00/],
    ['addresses that are cut off', proxyV2({ family: 0x11, addresses: Buffer.alloc(11) }), /room for the addresses/],
    ['IPv6 with room for IPv4', proxyV2({ family: 0x21, addresses: Buffer.alloc(12) }), /room for the addresses/],
    [
      'too much behind them',
      proxyV2({ source: '1.2.3.4', extra: Buffer.alloc(4_096) }),
      /at most 4096 bytes, not 4124/,
    ],
    ['too much of the proxy itself', proxyV2({ command: 0x20, extra: Buffer.alloc(65_535) }), /at most 4096 bytes/],
  ])('LIM-9 is refused that is %s, as soon as it shows', (_what, bytes, problem) => {
    expect(() => readProxyHeader(bytes)).toThrow(problem);
    expect(() => readProxyHeader(bytes.subarray(0, 40))).toThrow(problem);
  });
});
