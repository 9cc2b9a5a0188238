// Deciding: how much a person must do to say yes grows with what cannot be undone.

import { ApiError, approveSeveral, decide } from './api.js';
import { by, el, fill, toast } from './dom.js';
import { FormError, form } from './form.js';
import { parse } from './json.js';
import { PAST } from './detail.js';
import { reveal } from './text.js';

/**
 * @typedef {import('./api.js').Pending} Pending
 * @typedef {import('./api.js').Call} Call
 */

/** @returns {HTMLDialogElement} */
const dialog = () => /** @type {HTMLDialogElement} */ (by('dialog'));

/** What was open is about something else now. */
export function closeDialog() {
  if (dialog().open) dialog().close();
}

export const isDialogOpen = () => dialog().open;

/**
 * @param {string} title
 * @param {{ tone?: string, submit: string, body: (HTMLElement | null)[], ready?: (form: HTMLFormElement) => boolean, send: () => Promise<boolean> }} what
 */
function ask(title, what) {
  const error = el('p', { class: 'error', role: 'alert' });
  const submit = el('button', { type: 'submit', class: `primary ${what.tone ?? ''}` }, what.submit);
  const inner = el('form', { class: 'card', method: 'dialog', novalidate: true },
    el('h2', { id: 'dialog-title' }, title), ...what.body.filter((part) => part !== null), error,
    el('div', { class: 'buttons' }, el('button', { type: 'button', class: 'quiet', onclick: closeDialog }, 'Cancel'), submit));
  const check = () => { if (what.ready) submit.disabled = !what.ready(inner); };
  inner.addEventListener('input', () => {
    error.textContent = '';
    check();
  });
  inner.addEventListener('submit', async (event) => {
    event.preventDefault();
    if (submit.disabled) return;
    submit.disabled = true;
    error.textContent = '';
    try {
      if (await what.send()) closeDialog();
    } catch (reason) {
      error.textContent = reason instanceof Error ? reason.message : String(reason);
      if (reason instanceof FormError) reason.input?.focus();
    } finally {
      submit.disabled = false;
      check();
    }
  });
  fill(dialog(), inner);
  check();
  dialog().showModal();
  const first = inner.querySelector('[autofocus], input, textarea, select');
  (first instanceof HTMLElement ? first : submit).focus();
}

/**
 * Sends a decision, and says what came of it.
 * @param {Pending} pending
 * @param {string} decision
 * @param {{ [name: string]: string }} [fields]
 */
export async function send(pending, decision, fields = {}) {
  try {
    const decided = await decide(pending, decision, fields);
    if (decision === 'approve' && decided.still_needed > 0) toast(`Your approval of ${pending.tool} counts; ${decided.still_needed} more needed.`, 'good');
    else if (decision === 'amend' && decided.state === 'awaiting_approval') toast(`Amended. The new arguments of ${pending.tool} need approval.`, 'good');
    else toast(`You ${PAST[decision] ?? decision} ${pending.tool}.`, 'good');
    return true;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const recorded = error.problem['decision'];
    if (error.status === 409 && recorded) {
      toast(`${recorded.approver} ${PAST[recorded.decision] ?? recorded.decision} it already. Your decision does not count.`, 'bad');
      return true;
    }
    if (error.status === 422 || error.status === 400) throw new FormError(error.message);
    throw error;
  }
}

/** @param {Pending} pending */
const about = (pending) => el('p', { class: 'about' }, el('strong', {}, reveal(pending.tool)), ' for ', reveal(pending.requester.id),
  el('span', { class: 'fingerprint' }, pending.fingerprint_short));

/** @param {Pending} pending */
export function approve(pending) {
  if (pending.severity === 'read_only') {
    void send(pending, 'approve').catch((error) => toast(error.message, 'bad'));
    return;
  }
  if (pending.severity === 'normal') {
    ask('Approve?', {
      submit: 'Approve', body: [about(pending), el('pre', { tabindex: '0' }, reveal(pending.arguments_text))],
      send: () => send(pending, 'approve'),
    });
    return;
  }
  const code = pending.fingerprint_short.slice(0, 4);
  const input = el('input', { id: 'confirm', type: 'text', autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false', maxlength: 8, class: 'code', autofocus: true });
  ask('Approve what cannot be undone?', {
    tone: 'danger', submit: 'Approve for good',
    body: [about(pending), el('pre', { tabindex: '0' }, reveal(pending.arguments_text)),
      el('div', { class: 'field' }, el('label', { for: 'confirm' }, 'Type the first group of the fingerprint, ', el('code', {}, code)), input)],
    ready: () => input.value.trim().toLowerCase() === code,
    send: () => send(pending, 'approve'),
  });
}

/** @param {Pending} pending */
export function decline(pending) {
  const input = el('textarea', { id: 'reason', rows: 4, maxlength: 4000, autofocus: true });
  ask('Decline', {
    tone: 'danger', submit: 'Decline',
    body: [about(pending), el('div', { class: 'field' }, el('label', { for: 'reason' }, 'Reason'), input, el('p', { class: 'faint hint' }, 'The model is told. It may be left empty.'))],
    send: () => send(pending, 'decline', input.value.trim() ? { reason: JSON.stringify(input.value.trim()) } : {}),
  });
}

/** @param {Pending} pending @param {Call} call */
export function amend(pending, call) {
  const made = form(call.input_schema, parse(pending.arguments_text), 'Arguments');
  const input = el('textarea', { id: 'reason', rows: 2, maxlength: 4000 });
  ask('Amend the arguments', {
    submit: 'Amend',
    body: [about(pending), made.element, el('div', { class: 'field' }, el('label', { for: 'reason' }, 'Reason'), input, el('p', { class: 'faint hint' }, 'What really runs is checked, gated and fingerprinted anew, and may need approval again.'))],
    send: () => send(pending, 'amend', { arguments: made.read(), ...(input.value.trim() ? { reason: JSON.stringify(input.value.trim()) } : {}) }),
  });
}

/** @param {Pending} pending */
export function cancel(pending) {
  ask('Withdraw this request?', { tone: 'danger', submit: 'Withdraw', body: [about(pending)], send: () => send(pending, 'cancel') });
}

/** @param {Pending} pending */
export function settle(pending) {
  const happened = el('select', { id: 'happened', autofocus: true },
    el('option', { value: 'succeeded' }, 'It took effect'), el('option', { value: 'failed' }, 'It did not take effect'), el('option', { value: 'retry' }, 'It did not take effect; run it now'));
  const text = el('textarea', { id: 'text', rows: 3, maxlength: 4000 });
  ask('What happened?', {
    tone: 'danger', submit: 'Settle',
    body: [about(pending), el('div', { class: 'field' }, el('label', { for: 'happened' }, 'You found out that'), happened), el('div', { class: 'field' }, el('label', { for: 'text' }, 'What the model is told'), text)],
    ready: () => { text.disabled = happened.value === 'retry'; return happened.value === 'retry' || text.value.trim() !== ''; },
    send: () => send(pending, 'settle', { happened: JSON.stringify(happened.value), ...(happened.value === 'retry' ? {} : { text: JSON.stringify(text.value.trim()) }) }),
  });
}

/**
 * The form for a question, in place: answering is all there is to do.
 * @param {Pending} pending
 * @param {Call} call
 */
export function answering(pending, call) {
  const made = form(call.resume_schema, undefined, 'Answer');
  const error = el('p', { class: 'error', role: 'alert' });
  const submit = el('button', { type: 'submit', class: 'primary' }, 'Answer');
  const box = el('form', { class: 'answer', novalidate: true, 'aria-label': 'Answer' }, made.element, error, el('div', { class: 'buttons' }, submit));
  box.addEventListener('input', () => { error.textContent = ''; });
  box.addEventListener('submit', async (event) => {
    event.preventDefault();
    submit.disabled = true;
    error.textContent = '';
    try {
      await send(pending, 'answer', { data: made.read() });
    } catch (reason) {
      error.textContent = reason instanceof Error ? reason.message : String(reason);
      if (reason instanceof FormError) reason.input?.focus();
    } finally {
      submit.disabled = false;
    }
  });
  return box;
}

/**
 * Approves several calls of one tool, none of which is destructive, each with the fingerprint
 * that was on the screen.
 * @param {Pending[]} picked
 * @param {() => void} done
 */
export function batch(picked, done) {
  const first = picked[0];
  if (!first || picked.some((one) => one.tool !== first.tool || one.severity === 'destructive')) return;
  ask(`Approve ${picked.length} requests?`, {
    submit: `Approve ${picked.length}`,
    body: [el('ul', { class: 'batch-list' }, ...picked.map((one) => el('li', {}, about(one), el('pre', { tabindex: '0' }, reveal(one.arguments_text, { limit: 300 })))))],
    send: async () => {
      const { outcomes } = await approveSeveral(picked);
      const refused = outcomes.filter((one) => one.problem !== null);
      const approved = outcomes.length - refused.length;
      if (approved > 0) toast(`You approved ${approved} of ${first.tool}.`, 'good');
      for (const { problem } of refused) toast(problem?.detail ?? '', 'bad');
      done();
      return true;
    },
  });
}

export function help() {
  const keys = [['j  ↓', 'next request'], ['k  ↑', 'previous request'], ['Enter', 'read the request'], ['a', 'approve'], ['d', 'decline'], ['m', 'amend'], ['/', 'search'], ['Esc', 'close, or back to the queue'], ['?', 'these keys']];
  fill(dialog(), el('div', { class: 'card' }, el('h2', { id: 'dialog-title' }, 'Keys'),
    el('dl', { class: 'keys' }, ...keys.flatMap(([key, what]) => [el('dt', {}, el('kbd', {}, key ?? '')), el('dd', {}, what ?? '')])),
    el('div', { class: 'buttons' }, el('button', { type: 'button', class: 'primary', onclick: closeDialog, autofocus: true }, 'Close'))));
  dialog().showModal();
}
