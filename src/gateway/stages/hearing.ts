import type { Ask, Hearing, Questions } from '../common/place.ts';
import type { Stored } from '../common/stored.ts';
import type { World } from '../common/world.ts';
import type { Edges } from '../faults/edges.ts';
import type { Boxes } from './boxes.ts';
import type { Money } from './money.ts';

type Answers = { [K in Ask]: (question: Questions[K]['question']) => Promise<Questions[K]['answer']> };

/** Returns what a gateway does with what the others of its database say. */
export function hearingOf(world: World, stored: Stored, boxes: Boxes, money: Money, edges: Edges): Hearing {
  const { changes } = world;
  const { hub, signer, streams, sessionCheck, here } = boxes;
  const answers: Answers = {
    post: ({ message, box: terminalCode, sessionId }) => streams.take({ terminalCode, sessionId }, message),
    push: () => Promise.reject(new Error('nobody answers push')),
    traffic: () => Promise.reject(new Error('nobody answers traffic')),
  };
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
        case 'edges':
          return edges.hear(news.text);
      }
    },
    hint: (hint) => {
      if (hint.about === 'callbacks') money.dispatcher.wakeHere(hint.partner);
    },
    answer: (kind, question) => answers[kind](question),
    mayHaveMissed: () => undefined,
    unseen: () => hub.sendAway('the gateway cannot reach its database'),
  };
}
