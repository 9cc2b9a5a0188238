// The native API, from the page that the same server serves.

import { parse } from './json.js';

/**
 * @typedef {{ id: string, authenticated_by: string }} Person
 * @typedef {{ source: string, policy: string | null, title: string | null, text: string }} Reason
 * @typedef {{ approver: string, at: string }} Vote
 * @typedef {'approve' | 'decline' | 'amend' | 'answer' | 'cancel' | 'settle'} Can
 * @typedef {{
 *   run: string, call: string, agent: string, path: string[], tool: string,
 *   severity: 'read_only' | 'normal' | 'destructive', kind: 'approval' | 'question' | 'in_doubt',
 *   arguments_text: string, fingerprint: string, fingerprint_short: string, reasons: Reason[],
 *   quorum: number, approvals: Vote[], still_needed: number, requester: Person,
 *   requested_at: string, expires_at: string, payload_text: string | null, can: Can[], standing: string,
 * }} Pending
 * @typedef {{ decision: string, approver: string, at: string, reason: string | null, content: string | null }} Decision
 * @typedef {{ policy: string, title: string | null, why: string | null, who: string, conditional: boolean }} Rule
 * @typedef {{
 *   pending: Pending | null, state: string, description: string | null,
 *   input_schema: Schema | null, resume_schema: Schema | null,
 *   conversation: { who: 'user' | 'model', text: string }[],
 *   previous: { call: string, arguments_text: string, requester: string, approvals: Vote[] } | null,
 *   approvers: Rule[], decisions: Decision[], amended_by: string | null, outcome: string | null,
 * }} Call
 * @typedef {{ id: string, tenant: string | null, roles: string[], auditor: boolean, warning: string | null }} Me
 * @typedef {{ [key: string]: any }} Schema
 */

/** An answer that is not what was asked for. */
export class ApiError extends Error {
  /** @param {number} status @param {{ [key: string]: any }} problem */
  constructor(status, problem) {
    super(typeof problem['detail'] === 'string' ? problem['detail'] : `The server answered ${status}.`);
    this.status = status;
    this.problem = problem;
  }
}

/**
 * @param {string} method
 * @param {string} path
 * @param {string} [body] JSON text
 * @returns {Promise<any>}
 */
async function request(method, path, body) {
  let response;
  try {
    response = await fetch(path, {
      method,
      credentials: 'same-origin',
      headers: body === undefined ? {} : { 'content-type': 'application/json' },
      ...(body === undefined ? {} : { body }),
    });
  } catch {
    throw new ApiError(0, { detail: 'The server cannot be reached. Nothing was decided; try again.' });
  }
  const text = await response.text();
  /** @type {any} */
  let value = null;
  try {
    value = text ? JSON.parse(text) : null;
  } catch {
    value = null;
  }
  if (!response.ok) throw new ApiError(response.status, value ?? {});
  return value;
}

const of = encodeURIComponent;

/** @returns {Promise<Me>} */
export const me = () => request('GET', '../v1/me');

/** @returns {Promise<{ warning: string | null, offers: string[] }>} */
export const offers = () => request('GET', 'session');

/** @param {string} token */
export const signIn = (token) => request('POST', 'session', JSON.stringify({ token }));

export const signOut = () => request('DELETE', 'session');

/** @param {string} run @param {string} call @returns {Promise<Call>} */
export const call = (run, call) => request('GET', `../v1/runs/${of(run)}/calls/${of(call)}`);

/**
 * @param {Pending} pending what the person saw
 * @param {string} decision
 * @param {{ [name: string]: string }} [fields] JSON texts
 * @returns {Promise<{ state: string, decision: Decision, repeated: boolean, still_needed: number }>}
 */
export function decide(pending, decision, fields = {}) {
  const more = Object.entries(fields).map(([name, text]) => {
    parse(text);
    return `,${JSON.stringify(name)}:${text}`;
  });
  const body = `{"decision":${JSON.stringify(decision)},"fingerprint":${JSON.stringify(pending.fingerprint)}${more.join('')}}`;
  return request('POST', `../v1/runs/${of(pending.run)}/calls/${of(pending.call)}/decision`, body);
}

/**
 * Approves several calls of one tool, each with the fingerprint that the person saw.
 * @param {Pending[]} picked
 * @returns {Promise<{ outcomes: { call: string, decided: { state: string, still_needed: number } | null, problem: { detail: string, decision?: Decision } | null }[] }>}
 */
export const approveSeveral = (picked) =>
  request('POST', '../v1/approvals', JSON.stringify({ approve: picked.map(({ run, call, fingerprint }) => ({ run, call, fingerprint })) }));

/**
 * The live list. It comes back by itself after whatever cut it off.
 * @param {{
 *   snapshot: (pending: Pending[]) => void, upsert: (pending: Pending) => void,
 *   remove: (call: string) => void, state: (state: 'on' | 'off') => void, denied: () => void,
 * }} listener
 * @returns {() => void} ends it
 */
export function live(listener) {
  /** @type {EventSource | undefined} */
  let source;
  let wait = 500;
  let over = false;
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  let timer;

  const open = () => {
    source = new EventSource('../v1/pending/live');
    source.addEventListener('snapshot', (event) => {
      wait = 500;
      listener.state('on');
      listener.snapshot(JSON.parse(event.data).pending);
    });
    source.addEventListener('upsert', (event) => listener.upsert(JSON.parse(event.data)));
    source.addEventListener('remove', (event) => listener.remove(JSON.parse(event.data).call));
    source.addEventListener('error', () => {
      source?.close();
      if (over) return;
      listener.state('off');
      timer = setTimeout(async () => {
        try {
          await me();
        } catch (error) {
          if (error instanceof ApiError && error.status === 401) {
            listener.denied();
            return;
          }
        }
        if (!over) open();
      }, wait);
      wait = Math.min(wait * 2, 8000);
    });
  };
  open();
  return () => {
    over = true;
    clearTimeout(timer);
    source?.close();
  };
}
