// The inbox: what waits, live; one request beside it; keys for people who decide all day.

import * as api from './api.js';
import * as decisions from './decide.js';
import { over, waiting } from './detail.js';
import { by, el, fill, say, toast } from './dom.js';
import { filtered, isMine, render } from './list.js';

/**
 * @typedef {import('./api.js').Pending} Pending
 * @typedef {import('./api.js').Call} Call
 */

/** @type {Map<string, Pending>} */
const pending = new Map();
/** @type {Set<string>} */
const fresh = new Set();
/** @type {Set<string>} */
const picked = new Set();
/** @type {{ run: string, call: string } | null} */
let selected = null;
/** What the person has been shown of the selected request: decisions are about this.
 * @type {{ pending: Pending, call: Call } | null} */
let opened = null;
/** @type {(() => void) | null} */
let stop = null;

const search = /** @type {HTMLInputElement} */ (by('search'));
const scope = /** @type {HTMLSelectElement} */ (by('scope'));
const tool = /** @type {HTMLSelectElement} */ (by('tool'));
const list = by('list');
const detail = by('detail');

const shown = () =>
  filtered([...pending.values()].sort((one, other) => Number(isMine(other)) - Number(isMine(one)) || one.requested_at.localeCompare(other.requested_at) || one.call.localeCompare(other.call)),
    { search: search.value, scope: scope.value, tool: tool.value });

/** @param {Pending} one */
const batchable = (one) => one.kind === 'approval' && one.severity !== 'destructive' && one.can.includes('approve');

function draw() {
  const rows = shown();
  const mine = [...pending.values()].filter(isMine).length;
  by('count').textContent = String(mine);
  document.title = mine > 0 ? `(${mine}) Approvals` : 'Approvals';
  drawTools();
  for (const call of picked) if (!pending.has(call)) picked.delete(call);
  const first = [...picked].map((call) => pending.get(call))[0];
  const equals = rows.filter((one) => batchable(one) && rows.filter((other) => batchable(other) && other.tool === one.tool).length > 1);
  render(list, rows, (one) => ({
    selected: selected?.call === one.call,
    fresh: fresh.has(one.call),
    picked: picked.has(one.call),
    pickable: equals.includes(one) && (!first || first.tool === one.tool),
    open: () => { void open(one.run, one.call, true); },
    pick: (on) => {
      if (on) picked.add(one.call); else picked.delete(one.call);
      draw();
    },
  }));
  const empty = by('empty');
  empty.hidden = rows.length > 0;
  empty.textContent = pending.size === 0 ? 'Nothing waits. New requests appear here by themselves.'
    : mine === 0 && scope.value === 'mine' ? 'Nothing waits for you to decide.' : 'Nothing matches the filter.';
  drawBatch();
}

function drawTools() {
  const names = [...new Set([...pending.values()].map((one) => one.tool))].sort();
  const known = [...tool.options].slice(1).map((option) => option.value);
  if (names.join('\n') === known.join('\n')) return;
  const chosen = tool.value;
  fill(tool, el('option', { value: '' }, 'Every tool'), ...names.map((name) => el('option', { value: name, selected: name === chosen }, name)));
}

function drawBatch() {
  const bar = by('batch');
  const chosen = [...picked].map((call) => pending.get(call)).filter((one) => one !== undefined);
  bar.hidden = chosen.length === 0;
  if (chosen.length === 0) return;
  fill(bar, el('span', {}, `${chosen.length} of ${chosen[0]?.tool} selected`), el('span', { class: 'grow' }),
    el('button', { type: 'button', class: 'quiet', onclick: () => { picked.clear(); draw(); } }, 'Clear'),
    el('button', { type: 'button', class: 'primary', onclick: () => decisions.batch(chosen, () => { picked.clear(); draw(); }) }, `Approve ${chosen.length}…`));
}

/** @param {Pending} one @param {Call} call @param {boolean} changed */
function drawDetail(one, call, changed) {
  const actions = el('div', { class: 'actions', role: 'group', 'aria-label': 'Decide' });
  const can = new Set(one.can);
  const answer = can.has('answer') ? decisions.answering(one, call) : null;
  const buttons = el('div', { class: 'buttons' });
  /** @param {string} text @param {string} key @param {string} kind @param {() => void} act */
  const button = (text, key, kind, act) => buttons.append(el('button', { type: 'button', class: kind, onclick: act, 'aria-keyshortcuts': key || undefined }, text, key ? ' ' : null, key ? el('kbd', { 'aria-hidden': 'true' }, key) : null));
  if (can.has('cancel')) button('Withdraw…', '', 'quiet', () => decisions.cancel(one));
  if (can.has('settle')) button('Settle…', '', 'primary', () => decisions.settle(one));
  if (can.has('amend')) button('Amend…', 'm', 'quiet', () => decisions.amend(one, call));
  if (can.has('decline')) button('Decline…', 'd', 'decline', () => decisions.decline(one));
  if (can.has('approve')) button(one.severity === 'read_only' ? 'Approve' : 'Approve…', 'a', one.severity === 'destructive' ? 'primary danger' : 'primary', () => decisions.approve(one));
  if (one.kind === 'approval' && !can.has('approve')) {
    const voted = one.approvals.length > 0 && one.still_needed > 0 && !one.standing.includes('forbid');
    actions.append(el('p', { class: 'faint standing' }, voted && call.decisions.length > 0 && !can.has('cancel') ? 'You have decided; others are still needed.' : `You cannot decide this. ${one.standing}`));
  }
  if (buttons.childElementCount > 0) actions.append(buttons);
  fill(detail, el('button', { type: 'button', class: 'quiet back', onclick: close }, '← Queue'), ...waiting(call, one, { changed, answer, actions }));
}

const UNDER_WAY = new Set(['approved', 'ready', 'executing', 'delegated']);
/** @type {ReturnType<typeof setTimeout> | undefined} */
let again;

/**
 * What comes of a call that was decided is no event of the queue.
 * @param {string} run @param {string} call @param {number} wait in milliseconds
 */
function lookAgain(run, call, wait) {
  clearTimeout(again);
  again = setTimeout(() => { if (selected?.call === call) void open(run, call, false, wait); }, Math.min(wait, 5000));
}

/** @param {string} run @param {string} call @param {boolean} focus @param {number} [wait] */
async function open(run, call, focus, wait = 300) {
  const other = selected?.call !== call;
  selected = { run, call };
  fresh.delete(call);
  if (other) {
    opened = null;
    decisions.closeDialog();
    history.replaceState(null, '', `#${encodeURIComponent(run)}/${encodeURIComponent(call)}`);
    document.body.classList.add('reading');
  }
  draw();
  try {
    const read = await api.call(run, call);
    if (selected?.call !== call) return;
    if (read.pending) {
      const changed = opened !== null && opened.pending.fingerprint !== read.pending.fingerprint;
      if (changed) decisions.closeDialog();
      // A form that somebody fills in is not drawn anew under their hands.
      if (opened && !changed && opened.pending.can.includes('answer') && detail.contains(document.activeElement)) return;
      opened = { pending: read.pending, call: read };
      drawDetail(read.pending, read, changed);
    } else {
      const last = opened?.pending ?? pending.get(call);
      opened = null;
      if (!other && decisions.isDialogOpen()) decisions.closeDialog();
      fill(detail, el('button', { type: 'button', class: 'quiet back', onclick: close }, '← Queue'), ...over(read, last));
      if (UNDER_WAY.has(read.state)) lookAgain(run, call, other ? 400 : wait * 1.5);
    }
    if (focus) heading()?.focus({ preventScroll: true });
    if (other) detail.scrollTop = 0;
  } catch (error) {
    if (error instanceof api.ApiError && error.status === 401) return signedOut();
    const text = error instanceof api.ApiError && error.status === 404 ? 'There is no such request, or it is not yours to see.' : error instanceof Error ? error.message : String(error);
    fill(detail, el('p', { class: 'empty' }, text));
  }
}

const heading = () => /** @type {HTMLElement | null} */ (detail.querySelector('h2'));

function close() {
  selected = null;
  opened = null;
  document.body.classList.remove('reading');
  history.replaceState(null, '', location.pathname);
  fill(detail, placeholder());
  draw();
}

const placeholder = () => el('div', { class: 'placeholder' }, el('p', {}, 'Choose a request to read it.'), el('p', { class: 'faint' }, el('kbd', {}, 'j'), ' next  ', el('kbd', {}, 'k'), ' previous  ', el('kbd', {}, 'a'), ' approve  ', el('kbd', {}, 'd'), ' decline'));

/** @param {number} by_ */
function move(by_) {
  const rows = shown();
  if (rows.length === 0) return;
  const at = rows.findIndex((one) => one.call === selected?.call);
  const next = rows[at < 0 ? (by_ > 0 ? 0 : rows.length - 1) : Math.min(Math.max(at + by_, 0), rows.length - 1)];
  if (!next) return;
  void open(next.run, next.call, false);
  const button = list.querySelector(`li[data-call="${CSS.escape(next.call)}"] .row-button`);
  if (button instanceof HTMLElement) button.focus();
}

document.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || decisions.isDialogOpen() || by('desk').hidden) return;
  const target = event.target instanceof Element ? event.target : null;
  if (target?.closest('input, textarea, select')) {
    if (event.key === 'Escape' && target instanceof HTMLElement) target.blur();
    return;
  }
  /** @type {Record<string, () => void>} */
  const keys = {
    j: () => move(1), ArrowDown: () => move(1), k: () => move(-1), ArrowUp: () => move(-1),
    a: () => { if (opened?.pending.can.includes('approve')) decisions.approve(opened.pending); },
    d: () => { if (opened?.pending.can.includes('decline')) decisions.decline(opened.pending); },
    m: () => { if (opened?.pending.can.includes('amend')) decisions.amend(opened.pending, opened.call); },
    '/': () => search.focus(), '?': () => decisions.help(), Escape: close,
  };
  // Arrows scroll where somebody reads.
  if (event.key.startsWith('Arrow') && detail.contains(target)) return;
  const act = keys[event.key];
  if (act) {
    event.preventDefault();
    act();
  }
});

/** @param {'on' | 'off'} state */
function connection(state) {
  by('connection').dataset['state'] = state;
  by('connection-text').textContent = state === 'on' ? 'Live' : 'Reconnecting…';
}

function start() {
  stop?.();
  stop = api.live({
    snapshot: (all) => {
      pending.clear();
      for (const one of all) pending.set(one.call, one);
      draw();
      if (selected) void open(selected.run, selected.call, false);
    },
    upsert: (one) => {
      const known = pending.has(one.call);
      pending.set(one.call, one);
      if (!known) {
        fresh.add(one.call);
        if (isMine(one)) say(`New: ${one.tool} for ${one.requester.id}`);
      }
      draw();
      if (selected?.call === one.call) void open(one.run, one.call, false);
    },
    remove: (call) => {
      pending.delete(call);
      draw();
      if (selected?.call === call) void open(selected.run, selected.call, false);
    },
    state: connection,
    denied: signedOut,
  });
}

/** @param {boolean} inside */
function show(inside) {
  by('sign-in').hidden = inside;
  by('desk').hidden = !inside;
  for (const name of ['sign-out', 'who', 'help-button']) by(name).hidden = !inside;
  by('connection').hidden = !inside;
}

/** @param {string | null} text */
function warn(text) {
  const warning = by('warning');
  warning.hidden = !text;
  warning.textContent = text ?? '';
}

async function signedOut() {
  stop?.();
  stop = null;
  pending.clear();
  picked.clear();
  opened = null;
  decisions.closeDialog();
  fill(detail);
  show(false);
  try {
    const { warning, offers } = await api.offers();
    warn(warning);
    const box = by('offers');
    box.hidden = offers.length === 0;
    fill(box, el('p', { class: 'faint' }, 'Or be'), ...offers.map((name) => el('button', { type: 'button', class: 'quiet', onclick: () => { void signIn(name); } }, name)));
  } catch { /* The form works without them. */ }
  by('token').focus();
}

/** @param {string} token */
async function signIn(token) {
  const error = by('sign-in-error');
  error.textContent = '';
  try {
    await api.signIn(token);
    /** @type {HTMLInputElement} */ (by('token')).value = '';
    await enter();
  } catch (reason) {
    error.textContent = reason instanceof Error ? reason.message : String(reason);
  }
}

async function enter() {
  const me = await api.me();
  warn(me.warning);
  const roles = me.roles.length > 0 ? ` · ${me.roles.join(', ')}` : '';
  fill(by('who'), el('strong', {}, me.id), roles);
  if (me.auditor) scope.value = 'all';
  show(true);
  fill(detail, placeholder());
  const [run, call] = location.hash.slice(1).split('/').map(decodeURIComponent);
  if (run && call) {
    selected = { run, call };
    document.body.classList.add('reading');
  }
  start();
}

by('sign-in-form').addEventListener('submit', (event) => {
  event.preventDefault();
  void signIn(/** @type {HTMLInputElement} */ (by('token')).value);
});
by('sign-out').addEventListener('click', async () => {
  try {
    await api.signOut();
  } catch (error) {
    toast(error instanceof Error ? error.message : String(error), 'bad');
  }
  await signedOut();
});
by('help-button').addEventListener('click', decisions.help);
by('filters').addEventListener('submit', (event) => event.preventDefault());
for (const input of [search, scope, tool]) input.addEventListener('input', draw);
// Ages and expiries move on while nothing happens.
setInterval(() => { if (!by('desk').hidden) draw(); }, 15_000);

try {
  await enter();
} catch {
  await signedOut();
}
