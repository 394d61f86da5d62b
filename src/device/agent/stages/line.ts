import { UNKNOWN_BOOT } from '../../../lib/boot.ts';
import { ConfigError } from '../../../lib/errors.ts';
import type { Logger } from '../../../lib/log.ts';
import { signingKeyOf } from '../../../protocol/keys.ts';
import { activeOrder, type BoxEvent, type Send, shownPushId } from '../../box/state.ts';
import type { BoxSide } from '../contract.ts';
import { Enroller } from '../enrolment/enroller.ts';
import { type BoxSecret, configuredSecret, enrolledSecret } from '../enrolment/secret.ts';
import { Link } from '../link/link.ts';
import { qrCheckOf } from '../screen/outcome.ts';
import { LinkMemory } from '../transports/link-memory.ts';
import type { AgentSetup, AgentWorld } from '../world.ts';
import type { Face } from './face.ts';
import type { Mind } from './mind.ts';

const KEY_BYTES = 32;

/**
 * Returns the third stage of a box: its link to the gateway, which does not dial yet. Throws ConfigError for a box with
 * neither a secret nor a gateway to enrol at.
 */
export function openLine(setup: AgentSetup, world: AgentWorld, mind: Mind, { screens: [primary] }: Face): Link {
  const { clock, random, log } = world;
  const { loop, metrics, take } = mind;
  const side = sideOf(setup, world, mind);
  const link = new Link({
    clock,
    random,
    log,
    identity: setup.identity,
    secret: secretOf(setup, world, take),
    // The key is new at each start, so that no stolen disk contains it.
    key: signingKeyOf(random.secret(KEY_BYTES)),
    agentVersion: setup.version,
    display: setup.displays[0].driver,
    open: (io, signal) => setup.link.open({ ...io, box: side }, signal),
    checkQr: (qrCode) => qrCheckOf(primary, qrCode),
    shownPushId: () => shownPushId(loop.state),
    emit: (event) => {
      take(event);
      return loop.drained();
    },
  });
  loop.hear({
    send: (sends) => {
      metrics.countSends(sends);
      logSends(log, sends);
      link.send(sends);
    },
  });
  return link;
}

function sideOf({ dataDir }: AgentSetup, { log, boot = UNKNOWN_BOOT }: AgentWorld, { loop }: Mind): BoxSide {
  return {
    boot,
    memory: new LinkMemory(dataDir, log),
    showing: () => activeOrder(loop.state.stage)?.order,
    processed: () => loop.ping(),
  };
}

function secretOf(
  { identity, enrolment, dataDir }: AgentSetup,
  world: AgentWorld,
  emit: (event: BoxEvent) => void,
): BoxSecret {
  if (identity.secret !== undefined) return configuredSecret(identity.secret);
  if (enrolment === undefined) throw new ConfigError('a box without a secret needs an enrolment');
  return enrolledSecret({ ...world, dataDir, enroller: new Enroller({ ...world, identity, at: enrolment, emit }) });
}

function logSends(log: Logger, sends: readonly Send[]): void {
  for (const send of sends) {
    const { type } = send;
    if (type === 'rejected') log.warn('push-rejected', { pushId: send.pushId, code: send.code, reason: send.reason });
    else if (type === 'shown') log.info('push-shown', { pushId: send.pushId });
    else if (type === 'ended') log.info('order-ended', { orderId: send.orderId, how: send.how });
    else if (type === 'paid') log.info('payment-reported', { transactionId: send.transactionId, amount: send.amount });
  }
}
