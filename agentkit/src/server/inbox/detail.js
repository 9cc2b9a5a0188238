// One request, with everything that is needed to decide about it.

import { el } from './dom.js';
import { Num, isObject, parse, same, write } from './json.js';
import { KINDS, expiry } from './list.js';
import { ago, full, reveal, warnings } from './text.js';

/**
 * @typedef {import('./api.js').Pending} Pending
 * @typedef {import('./api.js').Call} Call
 * @typedef {import('./json.js').Json} Json
 */

/** @param {Json} value @returns {HTMLElement} */
function scalar(value) {
  if (value === null) return el('span', { class: 'literal' }, 'null');
  if (typeof value === 'boolean') return el('span', { class: 'literal' }, value ? 'true' : 'false');
  if (value instanceof Num) return el('span', { class: 'number' }, value.source);
  if (value === '') return el('span', { class: 'faint' }, 'empty text');
  return el('span', { class: 'text' }, reveal(String(value), { lines: true, limit: 600 }));
}

/**
 * A value beside what it was in the last approved call.
 * @param {Json} value
 * @param {Json | undefined} before
 * @param {boolean} compare
 * @returns {HTMLElement}
 */
function tree(value, before, compare) {
  if (Array.isArray(value) && value.length > 0 && (!compare || same(value, before)) && value.every((item) => typeof item !== 'object' || item === null || item instanceof Num)) {
    return el('ul', { class: 'scalars' }, ...value.map((item) => el('li', {}, scalar(item))));
  }
  if (Array.isArray(value) || isObject(value)) {
    const entries = Array.isArray(value) ? value.map((item, index) => /** @type {[string, Json]} */ ([String(index + 1), item])) : Object.entries(value);
    /** @type {Record<string, Json>} */
    const old = Object.create(null);
    if (before !== undefined && Array.isArray(before)) before.forEach((item, index) => { old[String(index + 1)] = item; });
    else if (before !== undefined && isObject(before)) Object.assign(old, before);
    if (entries.length === 0) return el('span', { class: 'faint' }, Array.isArray(value) ? 'empty list' : 'nothing');
    const gone = Object.keys(old).filter((name) => !entries.some(([key]) => key === name));
    return el('dl', { class: 'tree' },
      ...entries.map(([name, item]) => pair(name, item, old[name], compare)),
      ...(compare ? gone.map((name) => el('div', { class: 'pair gone' }, el('dt', {}, reveal(name)), el('dd', {},
        el('span', { class: 'change' }, 'not given now'), ' ', el('del', {}, reveal(write(old[name] ?? null)))))) : []));
  }
  return scalar(value);
}

/** @param {string} name @param {Json} value @param {Json | undefined} before @param {boolean} compare */
function pair(name, value, before, compare) {
  const nested = Array.isArray(value) || isObject(value);
  const changed = compare && !same(value, before);
  const flags = typeof value === 'string' ? warnings(value) : [];
  return el('div', { class: changed && !nested ? 'pair changed' : 'pair' },
    el('dt', {}, reveal(name)),
    el('dd', {}, tree(value, before, compare),
      changed && before === undefined ? el('span', { class: 'change' }, 'new') : null,
      changed && before !== undefined && !nested
        ? el('span', { class: 'was' }, el('span', { class: 'change' }, 'was'), ' ', el('del', {}, reveal(typeof before === 'string' ? before : write(before))))
        : null,
      flags.length > 0 ? el('p', { class: 'flag' }, `Contains ${flags.join(' and ')}.`) : null));
}

/** @param {Call} call @param {Pending} pending */
function argumentsOf(call, pending) {
  const value = parse(pending.arguments_text);
  const before = call.previous ? parse(call.previous.arguments_text) : undefined;
  const equal = before !== undefined && same(value, before);
  const raw = el('details', { class: 'raw' }, el('summary', {}, 'Raw, as it will run'),
    el('pre', { tabindex: '0', 'aria-label': 'Raw arguments' }, reveal(pending.arguments_text, { limit: 6000 })));
  return el('section', { class: 'block', 'aria-labelledby': 'arguments-title' },
    el('h3', { id: 'arguments-title' }, pending.kind === 'question' ? 'It was called with' : 'With these arguments'),
    el('div', { class: 'arguments' }, tree(value, before, before !== undefined)),
    call.previous
      ? el('p', { class: 'faint' }, equal ? 'The same as in the last approved call' : 'Compared with the last approved call',
          ` of this tool, approved by ${call.previous.approvals.map((vote) => vote.approver).join(', ')} ${ago(call.previous.approvals.at(-1)?.at ?? '')}`, ' for ', reveal(call.previous.requester), '.')
      : el('p', { class: 'faint' }, 'No earlier approved call of this tool to compare with.'),
    raw);
}

/** @param {Pending} pending */
function reasons(pending) {
  if (pending.kind !== 'approval' || pending.reasons.length === 0) return null;
  return el('section', { class: 'block', 'aria-labelledby': 'why-title' }, el('h3', { id: 'why-title' }, 'Why you are asked'),
    el('ul', { class: 'reasons' }, ...pending.reasons.map((reason) => el('li', {},
      reason.title ? el('strong', {}, reveal(reason.title)) : null,
      reason.title && reason.text ? ' ' : null,
      reason.text ? reveal(reason.text) : null,
      reason.source === 'policy' ? el('span', { class: 'faint source' }, `policy ${reason.policy}`) : null))));
}

/** @param {Call} call @param {Pending} pending */
function approvals(call, pending) {
  if (pending.kind !== 'approval') return null;
  const need = pending.still_needed;
  return el('section', { class: 'block', 'aria-labelledby': 'votes-title' },
    el('h3', { id: 'votes-title' }, 'Approvals'),
    el('p', { class: 'votes' },
      ...Array.from({ length: pending.quorum }, (_, index) => el('span', { class: index < pending.approvals.length ? 'vote given' : 'vote', 'aria-hidden': 'true' })),
      el('span', {}, pending.approvals.length === 0 ? `None yet; ${need === 1 ? 'one is' : `${need} different people are`} needed.` : `${pending.approvals.length} of ${pending.quorum}; ${need} more needed.`)),
    pending.approvals.length > 0
      ? el('ul', { class: 'plain' }, ...pending.approvals.map((vote) => el('li', {}, reveal(vote.approver), ' ', el('time', { class: 'faint', datetime: vote.at, title: full(vote.at) }, ago(vote.at)))))
      : null,
    call.approvers.length > 0
      ? el('details', { class: 'raw' }, el('summary', {}, 'Who can approve'),
          el('ul', { class: 'plain' }, ...call.approvers.map((rule) => el('li', {}, el('code', {}, reveal(rule.who)), rule.conditional ? ' with conditions' : '', el('span', { class: 'faint source' }, `policy ${rule.policy}`)))))
      : null);
}

/** @param {Call} call */
function conversation(call) {
  if (call.conversation.length === 0) return null;
  return el('section', { class: 'block', 'aria-labelledby': 'said-title' },
    el('h3', { id: 'said-title' }, 'What was said before'),
    el('ol', { class: 'said' }, ...call.conversation.map((turn) => el('li', { class: turn.who },
      el('span', { class: 'speaker' }, turn.who === 'user' ? 'User' : 'Model'),
      el('blockquote', {}, reveal(turn.text, { lines: true, limit: 600 }))))));
}

/** @param {Pending} pending */
function question(pending) {
  if (pending.kind !== 'question' || !pending.payload_text) return null;
  return el('section', { class: 'block', 'aria-labelledby': 'question-title' }, el('h3', { id: 'question-title' }, 'The tool asks'),
    el('div', { class: 'arguments' }, tree(parse(pending.payload_text), undefined, false)));
}

/** @param {Call} call */
function history(call) {
  if (call.decisions.length === 0) return null;
  return el('section', { class: 'block', 'aria-labelledby': 'history-title' }, el('h3', { id: 'history-title' }, 'Decisions so far'),
    el('ul', { class: 'plain' }, ...call.decisions.map((decision) => el('li', {},
      el('strong', {}, reveal(decision.approver)), ` ${PAST[decision.decision] ?? decision.decision} `,
      el('time', { class: 'faint', datetime: decision.at, title: full(decision.at) }, ago(decision.at)),
      decision.reason ? el('blockquote', {}, reveal(decision.reason, { lines: true })) : null,
      decision.content ? el('pre', { tabindex: '0' }, reveal(decision.content)) : null))));
}

/** @type {Record<string, string>} */
export const PAST = { approve: 'approved', decline: 'declined', amend: 'amended', answer: 'answered', cancel: 'withdrew', settle: 'settled' };

/** @type {Record<string, string>} */
const STATES = {
  approved: 'Approved', executing: 'Running now', succeeded: 'Done', failed: 'It ran and failed', declined: 'Declined', expired: 'Expired',
  cancelled: 'Withdrawn', denied: 'Denied by policy', superseded: 'Superseded', ready: 'About to run', in_doubt: 'In doubt',
};

/**
 * What to show of a call that no longer waits.
 * @param {Call} call
 * @param {Pending | undefined} last what was known while it waited
 */
export function over(call, last) {
  const decision = call.decisions.at(-1);
  const by = decision ? el('span', {}, reveal(decision.approver), ` ${PAST[decision.decision] ?? decision.decision} it ${ago(decision.at)}.`) : null;
  return [
    el('div', { class: 'detail-head' },
      el('h2', { tabindex: '-1' }, last ? reveal(last.tool) : 'Request'),
      el('p', { class: `outcome ${call.state}`, role: 'status' }, el('strong', {}, STATES[call.state] ?? call.state), by ? ' — ' : null, by)),
    el('div', { class: 'detail-body' },
      call.outcome ? el('section', { class: 'block' }, el('h3', {}, 'What the model was told'), el('blockquote', {}, reveal(call.outcome, { lines: true }))) : null,
      last ? argumentsOf(call, last) : null,
      history(call), conversation(call)),
  ];
}

/**
 * @param {Call} call
 * @param {Pending} pending
 * @param {{ changed: boolean, answer: HTMLElement | null, actions: HTMLElement }} state
 */
export function waiting(call, pending, { changed, answer, actions }) {
  return [
    el('div', { class: `detail-head ${pending.severity}` },
      el('p', { class: 'kicker' }, el('span', {}, KINDS[pending.kind]), pending.severity === 'destructive' ? el('span', { class: 'badge destructive' }, 'Cannot be undone') : null, expiry(pending)),
      el('h2', { tabindex: '-1' }, reveal(pending.tool)),
      call.description ? el('p', { class: 'description' }, reveal(call.description)) : null,
      el('p', { class: 'meta' }, 'Asked ', el('time', { datetime: pending.requested_at, title: full(pending.requested_at) }, ago(pending.requested_at)),
        ' for ', el('strong', {}, reveal(pending.requester.id)), ' by ', el('strong', {}, reveal(pending.path.join(' → '))),
        ' · ', el('span', { class: 'fingerprint', title: pending.fingerprint }, pending.fingerprint_short)),
      changed ? el('p', { class: 'flag', role: 'status' }, 'This request has changed since you opened it. Look again before you decide.') : null,
      call.amended_by ? el('p', { class: 'flag' }, 'The arguments were amended by ', reveal(call.amended_by), '.') : null,
      pending.kind === 'in_doubt' ? el('p', { class: 'flag' }, 'The instance died while the call was executing. Find out whether it took effect before you settle it.') : null),
    el('div', { class: 'detail-body' }, question(pending), answer, argumentsOf(call, pending), reasons(pending), approvals(call, pending), conversation(call), history(call)),
    actions,
  ];
}
