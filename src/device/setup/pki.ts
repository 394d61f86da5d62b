import type { webcrypto } from 'node:crypto';
import { isIP } from 'node:net';
import { BitString, Integer, OctetString, Utf8String } from 'asn1js';
import {
  AttributeTypeAndValue,
  AuthorityKeyIdentifier,
  BasicConstraints,
  Certificate,
  CertificateRevocationList,
  Extension,
  ExtKeyUsage,
  GeneralName,
  GeneralNames,
  RelativeDistinguishedNames,
  RevokedCertificate,
  Time,
  TimeType,
} from 'pkijs';

/** A certificate and its private key, both PEM. */
export interface Credential {
  cert: string;
  key: string;
}

/** The validity of a certificate, in milliseconds since 1970. */
export interface Validity {
  fromMs: number;
  untilMs: number;
}

/** The use of a certificate: a server with these names and addresses, or a client with its own name. */
export type Purpose = { kind: 'server'; hosts: readonly string[] } | { kind: 'client' };

const CURVE = { name: 'ECDSA', namedCurve: 'P-256' };
const HASH = 'SHA-256';
const SERIAL_BYTES = 16;
/** X.509 counts versions from 0. Certificates have extensions since version 3, revocation lists since version 2. */
const VERSION_3 = 2;
const LIST_VERSION_2 = 1;
const DAY_MS = 86_400_000;

/** The object identifiers of RFC 5280. */
const OID = {
  commonName: '2.5.4.3',
  subjectKeyIdentifier: '2.5.29.14',
  keyUsage: '2.5.29.15',
  subjectAltName: '2.5.29.17',
  basicConstraints: '2.5.29.19',
  authorityKeyIdentifier: '2.5.29.35',
  extKeyUsage: '2.5.29.37',
  serverAuth: '1.3.6.1.5.5.7.3.1',
  clientAuth: '1.3.6.1.5.5.7.3.2',
};
/** The bits in the first byte of KeyUsage (RFC 5280, section 4.2.1.3). */
const DIGITAL_SIGNATURE = 0x80;
const CERT_SIGN_AND_CRL_SIGN = 0x06;
/** The kinds of GeneralName (RFC 5280, section 4.2.1.6). */
const DNS_NAME = 2;
const IP_ADDRESS = 7;

/** Returns a validity of some years from `nowMs`. It starts a day earlier, for boxes whose clock is behind. */
export function validFor(nowMs: number, years: number): Validity {
  const until = new Date(nowMs);
  until.setUTCFullYear(until.getUTCFullYear() + years);
  return { fromMs: nowMs - DAY_MS, untilMs: until.getTime() };
}

/** Makes a certificate authority that signs server and client certificates, but no other authorities. */
export async function createAuthority(name: string, validity: Validity): Promise<Credential> {
  const keys = await newKeys();
  const draft = await drafted(name, name, keys.publicKey, validity);
  draft.extensions = [
    extension(OID.basicConstraints, new BasicConstraints({ cA: true, pathLenConstraint: 0 }).toSchema(), true),
    extension(OID.keyUsage, bits(CERT_SIGN_AND_CRL_SIGN), true),
    extension(OID.subjectKeyIdentifier, new OctetString({ valueHex: await keyId(draft) })),
  ];
  await draft.sign(keys.privateKey, HASH);
  return { cert: pem('CERTIFICATE', draft.toSchema(true).toBER()), key: await pemOfKey(keys.privateKey) };
}

/** Makes a key, and a certificate of the authority for it. */
export async function issue(
  authority: Credential,
  name: string,
  purpose: Purpose,
  validity: Validity,
): Promise<Credential> {
  const issuer = Certificate.fromBER(bytesOf(authority.cert));
  const keys = await newKeys();
  const draft = await drafted(name, commonNameOf(issuer), keys.publicKey, validity);
  const use = purpose.kind === 'server' ? OID.serverAuth : OID.clientAuth;
  draft.extensions = [
    extension(OID.basicConstraints, new BasicConstraints({ cA: false }).toSchema(), true),
    extension(OID.keyUsage, bits(DIGITAL_SIGNATURE), true),
    extension(OID.extKeyUsage, new ExtKeyUsage({ keyPurposes: [use] }).toSchema()),
    extension(OID.subjectKeyIdentifier, new OctetString({ valueHex: await keyId(draft) })),
    await madeBy(issuer),
  ];
  if (purpose.kind === 'server') {
    const names = new GeneralNames({ names: purpose.hosts.map(generalName) });
    draft.extensions.push(extension(OID.subjectAltName, names.toSchema()));
  }
  await draft.sign(await signingKey(authority), HASH);
  return { cert: pem('CERTIFICATE', draft.toSchema(true).toBER()), key: await pemOfKey(keys.privateKey) };
}

/**
 * Returns the authority's revocation list: the certificates of the previous list (PEM) plus these (PEM). It is valid as
 * long as the authority, because a broker refuses everybody once its list has expired.
 */
export async function revoke(
  authority: Credential,
  before: string | undefined,
  certs: readonly string[],
  nowMs: number,
): Promise<string> {
  const issuer = Certificate.fromBER(bytesOf(authority.cert));
  const earlier =
    before === undefined ? [] : (CertificateRevocationList.fromBER(bytesOf(before)).revokedCertificates ?? []);
  const revocationDate = time(nowMs);
  const added = certs.map((cert) => {
    const { serialNumber: userCertificate } = Certificate.fromBER(bytesOf(cert));
    return new RevokedCertificate({ userCertificate, revocationDate });
  });
  const list = new CertificateRevocationList({ version: LIST_VERSION_2, issuer: issuer.subject });
  list.thisUpdate = time(nowMs - DAY_MS);
  list.nextUpdate = issuer.notAfter;
  const revoked = [...earlier, ...added];
  if (revoked.length > 0) list.revokedCertificates = revoked;
  await list.sign(await signingKey(authority), HASH);
  return pem('X509 CRL', list.toSchema(true).toBER());
}

async function newKeys(): Promise<webcrypto.CryptoKeyPair> {
  return crypto.subtle.generateKey(CURVE, true, ['sign', 'verify']);
}

async function drafted(
  name: string,
  issuer: string,
  publicKey: webcrypto.CryptoKey,
  { fromMs, untilMs }: Validity,
): Promise<Certificate> {
  const draft = new Certificate({ version: VERSION_3 });
  const serial = crypto.getRandomValues(new Uint8Array(SERIAL_BYTES));
  // The number is positive and has no leading zero byte.
  serial[0] = ((serial[0] ?? 0) & 0x7f) | 0x40;
  draft.serialNumber = new Integer({ valueHex: serial.buffer });
  draft.subject = distinguishedName(name);
  draft.issuer = distinguishedName(issuer);
  draft.notBefore = time(fromMs);
  draft.notAfter = time(untilMs);
  await draft.subjectPublicKeyInfo.importKey(publicKey);
  return draft;
}

function time(ms: number): Time {
  const value = new Date(Math.floor(ms / 1000) * 1000);
  return new Time({ value, type: value.getUTCFullYear() < 2050 ? TimeType.UTCTime : TimeType.GeneralizedTime });
}

function distinguishedName(commonName: string): RelativeDistinguishedNames {
  const value = new Utf8String({ value: commonName });
  return new RelativeDistinguishedNames({
    typesAndValues: [new AttributeTypeAndValue({ type: OID.commonName, value })],
  });
}

function commonNameOf({ subject }: Certificate): string {
  return String(subject.typesAndValues.find(({ type }) => type === OID.commonName)?.value.valueBlock.value);
}

function extension(extnID: string, value: { toBER(): ArrayBuffer }, critical = false): Extension {
  return new Extension({ extnID, critical, extnValue: value.toBER() });
}

/** Returns a BIT STRING of one byte, without trailing zero bits, as DER requires. */
function bits(byte: number): BitString {
  const unusedBits = Math.log2(byte & -byte);
  return new BitString({ unusedBits, valueHex: new Uint8Array([byte]).buffer });
}

/** Computes the key identifier of RFC 5280, section 4.2.1.2, method 1. */
async function keyId({ subjectPublicKeyInfo }: Certificate): Promise<ArrayBuffer> {
  return crypto.subtle.digest('SHA-1', subjectPublicKeyInfo.subjectPublicKey.valueBlock.valueHexView.slice());
}

async function madeBy(issuer: Certificate): Promise<Extension> {
  const keyIdentifier = new OctetString({ valueHex: await keyId(issuer) });
  return extension(OID.authorityKeyIdentifier, new AuthorityKeyIdentifier({ keyIdentifier }).toSchema());
}

function generalName(host: string): GeneralName {
  if (isIP(host) === 0) return new GeneralName({ type: DNS_NAME, value: host });
  return new GeneralName({ type: IP_ADDRESS, value: new OctetString({ valueHex: addressBytes(host).buffer }) });
}

function addressBytes(address: string): Uint8Array<ArrayBuffer> {
  if (isIP(address) === 4) return new Uint8Array(address.split('.').map(Number));
  // The URL parser normalizes IPv6 addresses, without an IPv4 tail.
  const [head = '', tail] = new URL(`http://[${address}]/`).hostname.slice(1, -1).split('::');
  const groups = (text: string) => (text === '' ? [] : text.split(':').map((it) => Number.parseInt(it, 16)));
  const [before, after] = [groups(head), groups(tail ?? '')];
  const zeros = new Array<number>(tail === undefined ? 0 : 8 - before.length - after.length).fill(0);
  return new Uint8Array([...before, ...zeros, ...after].flatMap((group) => [group >> 8, group & 0xff]));
}

async function signingKey({ key }: Credential): Promise<webcrypto.CryptoKey> {
  return crypto.subtle.importKey('pkcs8', bytesOf(key), CURVE, false, ['sign']);
}

async function pemOfKey(key: webcrypto.CryptoKey): Promise<string> {
  return pem('PRIVATE KEY', await crypto.subtle.exportKey('pkcs8', key));
}

/** Encodes bytes as PEM (RFC 7468). */
function pem(label: string, bytes: ArrayBuffer): string {
  const lines =
    Buffer.from(bytes)
      .toString('base64')
      .match(/.{1,64}/g) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ''].join('\n');
}

function bytesOf(text: string): ArrayBuffer {
  const base64 = /-----BEGIN [^-]+-----([\s\S]+?)-----END/.exec(text)?.[1] ?? '';
  return new Uint8Array(Buffer.from(base64, 'base64')).buffer;
}
