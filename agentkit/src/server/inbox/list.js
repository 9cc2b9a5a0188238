// The queue: one row a request, the most urgent first.

import { el, fill } from './dom.js';
import { isObject, parse } from './json.js';
import { ago, full, reveal, warnings } from './text.js';

/** @typedef {import('./api.js').Pending} Pending */

export const KINDS = { approval: 'Approval', question: 'Question', in_doubt: 'In doubt' };

/** @param {Pending} pending what is asked of the person who looks */
export const isMine = (pending) => pending.can.some((can) => can !== 'cancel');

/** A line of arguments, for a row. @param {Pending} pending */
function gist(pending) {
  const value = parse(pending.kind === 'question' && pending.payload_text ? pending.payload_text : pending.arguments_text);
  const parts = el('span', { class: 'gist' });
  const entries = isObject(value) ? Object.entries(value) : [['', value]];
  for (const [name, item] of entries.slice(0, 4)) {
    const text = typeof item === 'string' ? item : item === null ? 'null' : isObject(item) ? '{…}' : Array.isArray(item) ? `[${item.length}]` : String(item);
    const short = text.length > 60 ? `${text.slice(0, 60)}…` : text;
    parts.append(el('span', { class: 'pair' }, el('span', { class: 'key' }, reveal(String(name))), ' ', el('span', {}, reveal(short))));
  }
  if (entries.length > 4) parts.append(el('span', { class: 'pair key' }, `+${entries.length - 4}`));
  return parts;
}

/** @param {Pending} pending */
export function expiry(pending) {
  const left = Date.parse(pending.expires_at) - Date.now();
  if (left <= 0) return el('span', { class: 'badge late' }, 'Expired');
  const soon = left < 3600_000;
  return el('time', { class: soon ? 'badge soon' : 'faint', datetime: pending.expires_at, title: full(pending.expires_at) }, `expires ${ago(pending.expires_at)}`);
}

/**
 * @param {Pending} pending
 * @param {{ selected: boolean, picked: boolean, pickable: boolean, fresh: boolean, open: () => void, pick: (on: boolean) => void }} state
 */
function row(pending, state) {
  const flags = warnings(pending.arguments_text.replace(/\\u([0-9a-f]{4})/g, (_, code) => String.fromCharCode(parseInt(code, 16))));
  const votes = pending.quorum > 1 ? el('span', { class: 'badge' }, `${pending.approvals.length} of ${pending.quorum}`) : null;
  const button = el('button', {
    type: 'button', class: 'row-button', 'aria-current': state.selected ? 'true' : undefined, onclick: state.open,
  },
    el('span', { class: 'row-top' },
      el('span', { class: 'tool' }, reveal(pending.tool)),
      pending.kind !== 'approval' ? el('span', { class: `badge ${pending.kind}` }, KINDS[pending.kind]) : null,
      pending.severity === 'destructive' ? el('span', { class: 'badge destructive' }, 'Cannot be undone') : null,
      flags.length > 0 ? el('span', { class: 'badge late', title: flags.join(', ') }, 'Odd characters') : null,
      votes,
      el('span', { class: 'grow' }),
      el('time', { class: 'age', datetime: pending.requested_at, title: full(pending.requested_at) }, ago(pending.requested_at))),
    gist(pending),
    el('span', { class: 'row-foot' }, 'for ', reveal(pending.requester.id), ' · ', reveal(pending.agent), ' · ', expiry(pending),
      isMine(pending) ? null : el('span', { class: 'faint' }, ' · not yours to decide')));
  const check = state.pickable
    ? el('label', { class: 'pick' },
        el('input', { type: 'checkbox', checked: state.picked, 'aria-label': `Select ${pending.tool} for ${pending.requester.id}`,
          onchange: (/** @type {Event} */ event) => state.pick(/** @type {HTMLInputElement} */ (event.target).checked) }))
    : null;
  return el('li', { class: `row ${pending.severity}${state.selected ? ' selected' : ''}${state.fresh ? ' fresh' : ''}`, 'data-call': pending.call }, check, button);
}

/**
 * @param {HTMLElement} list
 * @param {Pending[]} shown
 * @param {(pending: Pending) => Parameters<typeof row>[1]} stateOf
 */
export function render(list, shown, stateOf) {
  const focused = document.activeElement?.closest('li')?.getAttribute('data-call');
  const onCheck = document.activeElement instanceof HTMLInputElement;
  fill(list, ...shown.map((pending) => row(pending, stateOf(pending))));
  if (focused) {
    const item = list.querySelector(`li[data-call="${CSS.escape(focused)}"]`);
    const target = item?.querySelector(onCheck ? 'input' : 'button');
    if (target instanceof HTMLElement) target.focus({ preventScroll: true });
  }
}

/**
 * @param {Pending[]} all
 * @param {{ search: string, scope: string, tool: string }} filter
 */
export function filtered(all, filter) {
  const words = filter.search.toLowerCase().split(/\s+/).filter(Boolean);
  return all.filter((pending) => {
    if (filter.scope === 'mine' && !isMine(pending)) return false;
    if (filter.tool && pending.tool !== filter.tool) return false;
    const text = `${pending.tool} ${pending.agent} ${pending.requester.id} ${pending.arguments_text} ${pending.fingerprint_short}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}
