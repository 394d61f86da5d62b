import { Mismatch } from '../../check.ts';
import { boxCheck } from '../box-check.ts';

/** What is told a second time, or does not fit (PROTOCOL.md, clauses AGT-2 and AGT-7). */
export const REPEAT_CHECKS = [
  boxCheck('AGT-2', 'a push that is told again while it is on the screen is not taken anew', async (trial) => {
    const order = await trial.shown();
    trial.mark();
    trial.tell(order);
    await trial.echo();
    const answers = trial.since('accepted', 'shown', 'rejected', 'ended').filter((it) => it.pushId === order.pushId);
    const types = answers.map(({ type }) => type).join(', ');
    if (types !== '' && types !== 'shown') throw new Mismatch(`it was answered ${types}`);
  }),
  boxCheck('AGT-7', 'an acknowledgement of what nobody reported changes nothing', async (trial) => {
    const order = await trial.shown();
    trial.gateway.acknowledge([order.pushId, trial.gateway.random.uuid()]);
    await trial.echo();
    if (trial.since('ended').length > 0) throw new Mismatch('it ended the order on the screen');
    trial.gateway.acksReports = false;
    trial.withdraw(order.pushId);
    await trial.ended(order.pushId);
  }),
  boxCheck(
    'AGT-7',
    'a withdrawal of another push leaves the QR that is on the screen',
    async (trial) => {
      const order = await trial.alone();
      trial.withdraw(trial.gateway.random.uuid(), 'cancelled');
      await trial.echo();
      await trial.qrStays(order, 'the QR was taken away');
      if (trial.since('ended').length > 0) throw new Mismatch('it ended the order on the screen');
    },
    { needs: ['screen'] },
  ),
];
