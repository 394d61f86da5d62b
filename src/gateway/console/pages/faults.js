import { $, el, notice, pill, table } from './elements.js';

const PLACES = {
  service: 'Calls of partners',
  push: 'Pushes',
  payment: 'Payments',
  callback: 'Callbacks',
  link: 'Links of boxes',
};

/** Lists the boxes for which a fault can be ordered. Keeps the selection. */
export function offerBoxes(boxes) {
  const select = $('fault-box');
  const chosen = select.value;
  const options = boxes.map(({ terminalCode }) => el('option', { value: terminalCode }, terminalCode));
  select.replaceChildren(el('option', { value: '' }, 'any box'), ...options);
  select.value = boxes.some((it) => it.terminalCode === chosen) ? chosen : '';
}

/** Draws the active faults and those to order. `ask` sends a request to the gateway. */
export function faults(ask, { faults: offered, standing }) {
  $('fault-section').hidden = offered.length === 0;
  const run = (path, options, said) => async () => {
    try {
      await ask(path, options());
      notice(said);
    } catch (error) {
      notice(error.message);
    }
  };
  const button = (label, onclick) => el('button', { type: 'button', onclick }, label);
  const order = ({ name, isPerBox }) => {
    const options = () => {
      const box = isPerBox ? $('fault-box').value : '';
      const body = JSON.stringify({ fault: name, ...(box === '' ? {} : { box }) });
      return { method: 'POST', headers: { 'content-type': 'application/json' }, body };
    };
    return button('Order', run('/_mock/faults', options, `${name} is ordered`));
  };
  const end = ({ id, fault }) => {
    const onclick = run(`/_mock/faults/${id}`, () => ({ method: 'DELETE' }), `${fault} is ended`);
    return el('button', { type: 'button', title: 'delayed traffic continues at once', onclick }, 'End');
  };
  const copy = (magic) =>
    el(
      'button',
      {
        type: 'button',
        title: 'copy',
        onclick: () => navigator.clipboard.writeText(magic).then(() => notice('copied')),
      },
      el('span', { class: 'mono' }, magic),
    );
  const isPerBox = (fault) => offered.some((it) => it.name === fault && it.isPerBox);
  const groups = Object.entries(PLACES).flatMap(([place, title]) => [
    el('h3', {}, title),
    table(
      [
        ['Fault', 'mono'],
        ['What goes wrong', ''],
        ['As the content of an order', 'magic'],
        ['', 'acts'],
      ],
      offered
        .filter((it) => it.place === place)
        .map((it) => ({
          cells: [
            it.name,
            it.seconds ? `${it.about} (${it.seconds} s)` : it.about,
            it.magic === null ? '' : copy(it.magic),
            order(it),
          ],
        })),
      '',
    ),
  ]);
  return [...(standing.length === 0 ? [] : [standingTable(standing, isPerBox, end)]), ...groups];
}

function standingTable(standing, isPerBox, end) {
  const columns = [
    ['Active fault', 'mono'],
    ['For', ''],
    ['Occurred', ''],
    ['', 'acts'],
  ];
  const rows = standing.map((it) => ({
    cells: [
      it.fault,
      [it.box ?? (isPerBox(it.fault) ? 'any box' : 'the gateway'), it.content && `content ${it.content}`]
        .filter(Boolean)
        .join(', '),
      pill(it.times ? `${it.happened} of ${it.times}` : `${it.happened}×`, it.happened > 0 ? 'bad' : 'wait'),
      end(it),
    ],
  }));
  return el('div', { class: 'standing' }, table(columns, rows, ''));
}
