import { TOPICS } from '../common/changes.ts';
import type { Ask, Hearing, Questions } from '../common/place.ts';
import { ownTraffic } from '../common/shared-traffic.ts';
import { lookRegularly } from '../common/shared-work.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import type { Edges } from '../faults/edges.ts';
import type { Boxes } from './boxes.ts';
import type { Money } from './money.ts';

/** Answers the questions of other gateways. */
type Answers = { [Kind in Ask]: (question: Questions[Kind]['question']) => Promise<Questions[Kind]['answer']> };

/** Returns what a gateway does with what the others of its database say. */
export function hearingOf(world: World, stored: Stored, boxes: Boxes, money: Money, edges: Edges): Hearing {
  const { changes } = world;
  const { hub, signer, streams, sessionCheck, here, shared } = boxes;
  const answers: Answers = {
    post: ({ message, box: terminalCode, sessionId }) => streams.take({ terminalCode, sessionId }, message),
    push: (asked) => hub.pushes.show(asked),
    heard: async ({ box, sessionId }) => shared.hasHeard(box, sessionId),
    traffic: async (question) => ownTraffic(world, question),
  };
  const registryChanged = () => {
    stored.directory.refresh();
    sessionCheck.soon();
    changes.publishElsewhere('registry');
    return money.sources.refresh();
  };
  watchRegistry(world, stored, registryChanged);
  return {
    news: async (news) => {
      switch (news.about) {
        case 'registry':
          return registryChanged();
        case 'signing-key':
          return signer.reload();
        case 'renew':
          return hub.ends.renew(news.box, news.reason);
        case 'expel':
          return here.expel(news.box, news.reason, news.disabled);
        case 'credit-lost':
          return money.sources.catchUp.lostElsewhere(news.source);
        case 'edges':
          return edges.hear(news.text);
      }
    },
    hint: (hint) => {
      switch (hint.about) {
        case 'callbacks':
          return money.dispatcher.wakeHere(hint.partner);
        case 'notices':
          return hub.deliver(hint.boxes);
        case 'withdraw':
          return hub.pushes.withdrawHere(hint.box, hint.pushId, hint.why);
        case 'session':
          return shared.replaced(hint.box, hint.sessionId);
        // The place has taken it.
        case 'left':
          return;
        case 'lists':
          return changes.publishElsewhere(...hint.topics);
      }
    },
    answer: (kind, question) => answers[kind](question),
    mayHaveMissed: () => {
      shared.mayHaveMissed();
      changes.publishElsewhere(...TOPICS);
    },
    unseen: () => hub.ends.sendAway('the gateway cannot reach its database'),
  };
}

/** Calls `changed` also after changes of gateways that ended before they could tell. */
function watchRegistry(world: World, { store }: Stored, changed: () => Promise<void>): void {
  const over = new AbortController();
  let known: string | undefined;
  const looking = lookRegularly(world, 'registry', over.signal, async () => {
    const version = await store.registry.version();
    // A change before the first look may have been missed, too.
    if (version !== known) await changed();
    known = version;
  });
  world.opened.add('changes of the registry', () => {
    over.abort();
    return looking;
  });
}
