import type { Hearing } from '../common/place.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import type { Edges } from '../faults/edges.ts';
import type { Boxes } from './boxes.ts';
import type { Money } from './money.ts';

/** Returns what a gateway does with what the others of its database say. */
export function hearingOf(world: World, stored: Stored, boxes: Boxes, money: Money, edges: Edges): Hearing {
  const { changes } = world;
  const { hub, signer, sessionCheck, here } = boxes;
  return {
    news: async (news) => {
      switch (news.about) {
        case 'registry':
          stored.directory.refresh();
          sessionCheck.soon();
          changes.publish('registry');
          return money.sources.refresh();
        case 'signing-key':
          return signer.reload();
        case 'renew':
          return hub.renew(news.box, news.reason);
        case 'expel':
          return here.expel(news.box, news.reason, news.disabled);
        case 'credit-lost':
          return money.sources.catchUp.lostElsewhere(news.source);
        case 'occurrence':
          return edges.happenedElsewhere(news.id, news.times);
        case 'fault':
        case 'fault-ended':
          return;
      }
    },
    hint: (hint) => {
      if (hint.about === 'callbacks') money.dispatcher.wakeHere(hint.partner);
    },
    answer: async (kind) => {
      throw new Error(`nobody answers ${kind}`);
    },
    mayHaveMissed: () => undefined,
    unseen: () => hub.sendAway('the gateway cannot reach its database'),
  };
}
