export const $ = (id) => document.getElementById(id);

/** Makes an element. Text is never parsed as HTML, because payers write some of it. */
export function el(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === 'onclick') made.addEventListener('click', value);
    else if (value === true) made.setAttribute(key, '');
    else if (value !== false && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.filter((it) => it !== null && it !== undefined && it !== ''));
  return made;
}

export const money = (amount) => `${amount.toLocaleString('vi-VN')} ₫`;
export const time = (iso) => (iso === null ? '–' : new Date(iso).toLocaleTimeString('en-GB'));
const KIND = {
  shown: 'live',
  pushed: 'wait',
  paid: 'good',
  delivered: 'good',
  online: 'good',
  pending: 'wait',
  failed: 'bad',
};
export const pill = (text, kind = KIND[text] ?? '') => el('span', { class: `pill ${kind}` }, text);
export const stack = (first, second) =>
  el('div', {}, el('div', {}, first), second ? el('div', { class: 'sub' }, second) : '');

/** Returns whether the row is a test of the time when a live gateway was a sandbox. */
export function isOnlyTest({ test }) {
  return test && $('mode').className === 'live';
}

export function notice(text) {
  $('notice').textContent = text;
  $('notice').classList.add('on');
  clearTimeout(notice.timer);
  notice.timer = setTimeout(() => $('notice').classList.remove('on'), 3500);
}

export function table(columns, rows, emptyText) {
  if (rows.length === 0) return el('div', { class: 'empty' }, emptyText);
  const head = columns.map(([name, kind]) => el('th', { class: kind }, name));
  const body = rows.flatMap(({ cells, below }) => {
    const row = el('tr', { class: 'row' }, ...cells.map((cell, i) => el('td', { class: columns[i][1] }, cell)));
    return below ? [row, el('tr', { class: 'attempts' }, el('td', { colspan: columns.length }, ...below))] : [row];
  });
  return el('table', {}, el('thead', {}, el('tr', {}, ...head)), el('tbody', {}, ...body));
}
