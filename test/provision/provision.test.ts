import { X509Certificate } from 'node:crypto';
import { existsSync, watch } from 'node:fs';
import { appendFile, mkdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { beforeEach, describe, expect, it, onTestFinished } from 'vitest';
import { parse } from 'yaml';
import { loadAgentConfig } from '../../src/device/agent/config.ts';
import { emqxUser, mosquittoPassword } from '../../src/device/setup/brokers.ts';
import { createAuthority, issue, revoke, validFor } from '../../src/device/setup/pki.ts';
import { loadGatewayConfig } from '../../src/gateway/config/config.ts';
import { DIALECT_GATEWAY_RIGHTS, DIALECT_RIGHTS } from '../../src/protocol/dialect.ts';
import { boxRights, gatewayRights, type TopicRights } from '../../src/protocol/topics.ts';
import { eventually, temporaryFolder } from '../support/net.ts';
import { openssl } from '../support/openssl.ts';
import { PROGRAMS, without } from '../support/programs.ts';
import { provisioned } from '../support/provisioned.ts';
import { BOX1, BOX2, contentOf, run } from './provision-run.ts';

const { missing, note } = without(PROGRAMS.openssl);

/** A Raspberry Pi's user with the most open of umasks. */
beforeEach(() => void process.umask(0));

/** Counts how often a file of the folder is replaced from here on; the count waits until all that came before it is seen. */
function writesOf(path: string, name: string): () => Promise<number> {
  const folder = dirname(join(path, name));
  const seen: string[] = [];
  const watcher = watch(folder, (_event, file) => seen.push(file ?? ''));
  onTestFinished(() => watcher.close());
  return async () => {
    await writeFile(join(folder, 'last'), '');
    await eventually('the last change', () => seen.includes('last'));
    return seen.filter((file) => file === basename(name)).length;
  };
}

const textOf = (content: Record<string, { text: string }>, name: string) => content[name]?.text ?? '';

describe('paybox provision', () => {
  it('THR-15 paybox provision makes all that gateway, brokers and boxes need, keeps its secrets to their owner and prints none', async () => {
    const out = join(await temporaryFolder(), 'made');
    const { code, output } = await run(out, '--box', BOX1, '--host', 'gateway.example', '--host', '192.0.2.7');
    expect(code, output).toBe(0);
    const made = await contentOf(out);
    const modes = Object.fromEntries(Object.entries(made).map(([name, { mode }]) => [name, mode]));
    expect(modes).toEqual({
      'boxes/VVB000001/agent.yaml': '600',
      'boxes/VVB000001/ca.pem': '644',
      'boxes/VVB000001/cert.pem': '644',
      'boxes/VVB000001/key.pem': '600',
      'boxes/VVB000001/secret': '600',
      'ca-key.pem': '600',
      'ca.crl': '644',
      'ca.pem': '644',
      'emqx/acl.conf': '600',
      'emqx/users.csv': '600',
      'gateway/ca.pem': '644',
      'gateway/cert.pem': '644',
      'gateway/client-cert.pem': '644',
      'gateway/client-key.pem': '600',
      'gateway/gateway.yaml': '600',
      'gateway/key.pem': '600',
      'mosquitto/acl': '600',
      'mosquitto/mosquitto.conf': '644',
      'mosquitto/passwords': '600',
      'nats/nats.conf': '644',
      'nats/node.conf': '644',
      'nats/users.conf': '600',
      'rabbitmq/definitions.json': '600',
      'rabbitmq/rabbitmq.conf': '644',
    });
    for (const name of ['', 'boxes', 'boxes/VVB000001', 'gateway']) {
      expect((await stat(join(out, name))).mode & 0o777).toBe(0o700);
    }
    const secret = textOf(made, 'boxes/VVB000001/secret').trim();
    expect(Buffer.from(secret, 'base64url')).toHaveLength(32);
    expect(output).not.toContain(secret);
    expect(output.replaceAll(out, '')).not.toMatch(/[\w-]{40}/);
    const holders = Object.keys(made).filter((name) => textOf(made, name).includes(secret));
    expect(holders).toEqual(['boxes/VVB000001/secret', 'gateway/gateway.yaml']);

    const gateway = await loadGatewayConfig(join(out, 'gateway/gateway.yaml'));
    const box = { terminalCode: 'VVB000001', serialNumber: 'VVB900001', secret };
    expect(gateway).toMatchObject({ boxes: [box], http: { host: '0.0.0.0', port: 8443 } });
    const agent = await loadAgentConfig(join(out, 'boxes/VVB000001/agent.yaml'));
    expect(agent).toMatchObject({ box, link: { url: 'mqtts://gateway.example:8883' } });
    expect(agent.link.tls?.key).toBe(join(out, 'boxes/VVB000001/key.pem'));
  });

  it('paybox provision adds boxes, and changes nothing of what is there', async () => {
    const out = join(await temporaryFolder(), 'made');
    await run(out, '--box', BOX1);
    const file = join(out, 'gateway/gateway.yaml');
    await writeFile(file, (await readFile(file, 'utf8')).replace('boxes:', '# ours\npartners: []\nboxes:'));
    const before = await contentOf(out);
    expect(await run(out, '--box', BOX2)).toMatchObject({ code: 0 });
    const after = await contentOf(out);
    for (const [name, { text }] of Object.entries(before)) {
      const lists = ['gateway/gateway.yaml', 'mosquitto/passwords', 'emqx/users.csv'];
      const grows = [...lists, 'rabbitmq/definitions.json', 'nats/users.conf'].includes(name);
      const kept = text.split('\n').filter((line) => /[a-z]/.test(line));
      for (const line of kept) expect(textOf(after, name), name).toContain(line);
      expect(textOf(after, name) === text, name).toBe(!grows);
    }
    expect((await loadGatewayConfig(file)).boxes.map((it) => it.terminalCode)).toEqual(['VVB000001', 'VVB000002']);
  });

  it('paybox provision writes each list of boxes once for all of them, and reports each box as soon as it is whole', async () => {
    const { path, folder, at, text } = await provisioned();
    const [oldPassword, oldUser] = [mosquittoPassword('VVB000003', 'old'), emqxUser('VVB000003', 'old')];
    await appendFile(join(path, 'mosquitto/passwords'), `# ours\n${oldPassword}\n`);
    await appendFile(join(path, 'emqx/users.csv'), `${oldUser}\n`);
    const boxes = ['3', '4', '5'].map((n) => ({ terminalCode: `VVB00000${n}`, serialNumber: `VVB90000${n}` }));
    const lists = ['gateway/gateway.yaml', 'mosquitto/passwords', 'emqx/users.csv', 'nats/users.conf'];
    const written = lists.map((name) => writesOf(path, name));
    const made: string[] = [];
    await folder.addBoxes(boxes, at, ({ terminalCode }) => {
      expect(existsSync(join(folder.boxFolder(terminalCode), 'key.pem'))).toBe(true);
      made.push(terminalCode);
    });
    expect(made).toEqual(boxes.map(({ terminalCode }) => terminalCode));
    expect(await Promise.all(written.map((count) => count()))).toEqual([1, 1, 1, 1]);
    const names = ['VVB000001', 'VVB000002', ...made];
    const secrets = await Promise.all(names.map(async (name) => (await text(`boxes/${name}/secret`)).trim()));
    const known = (await loadGatewayConfig(join(path, 'gateway/gateway.yaml'))).boxes;
    expect(known.map(({ terminalCode }) => terminalCode)).toEqual(names);
    expect(known.map(({ secret }) => secret)).toEqual(secrets);
    const linesOf = async (name: string) => (await text(name)).trimEnd().split('\n');
    const heads = async (name: string) => (await linesOf(name)).map((line) => line.split(/[:,]/)[0]);
    expect(await heads('mosquitto/passwords')).toEqual(['gateway', 'VVB000001', 'VVB000002', '# ours', ...made]);
    expect(await heads('emqx/users.csv')).toEqual(['user_id', 'gateway', ...names]);
    expect(await linesOf('mosquitto/passwords')).not.toContain(oldPassword);
    const { users, permissions, topic_permissions: topics } = JSON.parse(await text('rabbitmq/definitions.json'));
    for (const list of [users.map((it: { name: string }) => ({ user: it.name })), permissions, topics]) {
      expect(list.map((it: { user: string }) => it.user)).toEqual(['gateway', ...names]);
    }
    expect([...(await text('nats/users.conf')).matchAll(/user: "(.*?)"/g)].map((it) => it[1])).toEqual([
      ...['gateway', ...names],
    ]);
  });

  it('paybox provision goes on where it was cut off before a box was whole', async () => {
    const { path, folder, at, text } = await provisioned();
    const box = { terminalCode: 'VVB000003', serialNumber: 'VVB900003' };
    await mkdir(join(path, 'boxes/VVB000003'));
    await writeFile(join(path, 'boxes/VVB000003/left'), 'x');
    await expect(folder.addBoxes([box], at, () => undefined)).rejects.toThrow('is there already');
    await rm(join(path, 'boxes/VVB000003'), { recursive: true });
    await folder.addBoxes([box], at, () => undefined);
    const secret = (await text('boxes/VVB000003/secret')).trim();
    const known = (await loadGatewayConfig(join(path, 'gateway/gateway.yaml'))).boxes;
    expect(known.filter((it) => it.terminalCode === 'VVB000003')).toMatchObject([{ ...box, secret }]);
  });

  it('TLS-4 paybox provision rotates one box: a new secret and certificate, the old one revoked, every other box as it was', async () => {
    const { path } = await provisioned();
    const before = await contentOf(path);
    const { code, output } = await run(path, '--rotate', 'VVB000001');
    expect(code, output).toBe(0);
    expect(output).toMatch(/Copy \S+\/boxes\/\S+\/secret, cert\.pem and key\.pem to the box/);
    expect(output).toContain('/* /etc/paybox && sudo systemctl restart paybox-agent');
    const after = await contentOf(path);
    const changed = Object.keys(after).filter((name) => textOf(after, name) !== textOf(before, name));
    expect(changed).toEqual([
      'boxes/VVB000001/cert.pem',
      'boxes/VVB000001/key.pem',
      'boxes/VVB000001/secret',
      'ca.crl',
      'emqx/users.csv',
      'gateway/gateway.yaml',
      'mosquitto/passwords',
      'nats/users.conf',
      'rabbitmq/definitions.json',
    ]);
    expect(Object.values(after).map((it) => it.mode)).toEqual(Object.values(before).map((it) => it.mode));
    const secrets = (content: typeof before) =>
      parse(textOf(content, 'gateway/gateway.yaml')).boxes.map((it: { secret: string }) => it.secret);
    expect(secrets(after)[0]).toBe(textOf(after, 'boxes/VVB000001/secret').trim());
    expect(secrets(after)[0]).not.toBe(secrets(before)[0]);
    expect(secrets(after)[1]).toBe(secrets(before)[1]);
    for (const name of ['mosquitto/passwords', 'emqx/users.csv']) {
      expect(textOf(after, name).match(/^VVB000001/gm)).toHaveLength(1);
      const other = (content: typeof before) => /^VVB000002.*$/m.exec(textOf(content, name))?.[0];
      expect(other(after)).toBeDefined();
      expect(other(after)).toBe(other(before));
    }
  });

  it('paybox provision rotates the gateway, for other hosts too', async () => {
    const { path, text } = await provisioned();
    expect(await run(path, '--rotate', 'gateway', '--host', 'new.example')).toMatchObject({ code: 0 });
    const certificate = new X509Certificate(await text('gateway/cert.pem'));
    expect(certificate.subjectAltName).toBe('DNS:new.example');
    expect(certificate.verify(new X509Certificate(await text('ca.pem')).publicKey)).toBe(true);
  });
});

describe.skipIf(missing)(`the certificates, to openssl${note}`, () => {
  it('the certificates are what they say, and the strictest check of openssl finds no fault', async () => {
    const { path, text } = await provisioned();
    const [ca, crl] = [join(path, 'ca.pem'), join(path, 'ca.crl')];
    const verify = async (purpose: string, name: string) =>
      (await openssl(['verify', '-x509_strict', '-purpose', purpose, '-CAfile', ca, join(path, name)])).code;
    expect(await verify('sslserver', 'gateway/cert.pem')).toBe(0);
    expect(await verify('sslclient', 'gateway/cert.pem')).not.toBe(0);
    expect(await verify('sslclient', 'boxes/VVB000001/cert.pem')).toBe(0);
    expect(await verify('sslserver', 'boxes/VVB000001/cert.pem')).not.toBe(0);
    const printed = String((await openssl(['x509', '-noout', '-text', '-in', ca])).out);
    expect(printed).toContain('CA:TRUE, pathlen:0');
    expect(printed).toContain('prime256v1');
    expect((await openssl(['crl', '-noout', '-in', crl, '-CAfile', ca])).errors).toContain('verify OK');
    const years = async (name: string) => {
      const { validFromDate, validToDate } = new X509Certificate(await text(name));
      return Math.floor((validToDate.getTime() - validFromDate.getTime()) / (365.25 * 86_400_000));
    };
    expect(await years('ca.pem')).toBe(10);
    expect(await years('gateway/cert.pem')).toBe(2);
    expect(await years('boxes/VVB000001/cert.pem')).toBe(10);
  });

  it('the certificates name every kind of host, also far in the future, and lists of the revoked add up', async () => {
    const folder = await temporaryFolder();
    const validity = validFor(Date.now(), 60);
    const authority = await createAuthority('test', validity);
    const hosts = ['a.example', '192.0.2.1', '::1', '2001:db8::1:2', '::ffff:192.0.2.3', '1:2:3:4:5:6:7:8'];
    const server = await issue(authority, 'a.example', { kind: 'server', hosts }, validity);
    const client = await issue(authority, 'VVB000001', { kind: 'client' }, validity);
    const certificate = new X509Certificate(server.cert);
    expect(certificate.checkHost('a.example')).toBeDefined();
    for (const host of hosts.slice(1)) expect(certificate.checkIP(host), host).toBeDefined();
    expect(certificate.validToDate.getUTCFullYear()).toBe(new Date().getUTCFullYear() + 60);
    const first = await revoke(authority, undefined, [server.cert], Date.now());
    const list = await revoke(authority, first, [client.cert], Date.now());
    await writeFile(join(folder, 'list.pem'), list);
    const printed = String((await openssl(['crl', '-noout', '-text', '-in', join(folder, 'list.pem')])).out);
    const serials = [...printed.matchAll(/Serial Number: (\w+)/g)].map((it) => it[1]);
    expect(serials).toEqual([certificate.serialNumber, new X509Certificate(client.cert).serialNumber]);
  });
});

describe('the rights for EMQX', () => {
  /** The grammar that EMQX gives in its own acl.conf. */
  const WHO = String.raw`\{username, (?:"[\w-]+"|\{re, "[^"]+"\})\}`;
  const ACTION = String.raw`(?:publish|subscribe|\{publish, \[\{retain, false\}\]\})`;
  const TOPIC = String.raw`(?:"[^"]+"|\{eq, "[^"]+"\})`;
  const RULE = new RegExp(
    `^(?:\\{allow, (${WHO}), (${ACTION}), \\[(${TOPIC}(?:, ${TOPIC})*)\\]\\}|\\{deny, all\\})\\.$`,
  );

  it('TLS-5 THR-14 the rights for EMQX are terms of its grammar, end with a refusal of all else, and name the topics of the table', async () => {
    const { text } = await provisioned();
    const rules = (await text('emqx/acl.conf'))
      .trim()
      .split('\n')
      .filter((line) => !line.startsWith('%%'));
    expect(rules.filter((rule) => !RULE.test(rule))).toEqual([]);
    expect(rules.at(-1)).toBe('{deny, all}.');
    const topics = (who: string, action: string) =>
      rules
        .map((rule) => RULE.exec(rule))
        .filter((it) => it?.[1]?.includes(who) && it[2]?.includes(action))
        .flatMap((it) => [...(it?.[3] ?? '').matchAll(/"([^"]+)"/g)].map((topic) => topic[1]));
    const both = (rightsIn: (lane: 0 | '+') => TopicRights, action: 'read' | 'write') =>
      ([0, '+'] as const).flatMap((lane) => rightsIn(lane)[action]);
    const box = (lane: 0 | '+') => boxRights(`$${'{username}'}`, lane);
    expect(topics('gateway', 'subscribe')).toEqual([...both(gatewayRights, 'read'), ...DIALECT_GATEWAY_RIGHTS.read]);
    expect(topics('gateway', 'publish')).toEqual([...both(gatewayRights, 'write'), ...DIALECT_GATEWAY_RIGHTS.write]);
    expect(topics('vietqr-boxes', 'subscribe')).toEqual(DIALECT_RIGHTS.read);
    expect(topics('vietqr-boxes', 'publish')).toEqual(DIALECT_RIGHTS.write);
    expect(topics('VVB', 'subscribe')).toEqual(both(box, 'read'));
    expect(topics('VVB', 'publish').toSorted()).toEqual(both(box, 'write').toSorted());
  });
});
