// A form for a JSON Schema. It makes JSON text: what a person types as a number stays as typed.
// Whatever the form does not know is edited as JSON; the server checks everything again.

import { el } from './dom.js';
import { Num, isObject, parse, write } from './json.js';

/**
 * @typedef {import('./json.js').Json} Json
 * @typedef {import('./api.js').Schema} Schema
 * @typedef {{ element: HTMLElement, read: () => Json | undefined }} Field `undefined` is left out
 */

/** What a person typed that cannot be. */
export class FormError extends Error {
  /** @param {string} message @param {HTMLElement} [input] */
  constructor(message, input) {
    super(message);
    this.input = input;
  }
}

let ids = 0;
const id = () => `field-${(ids += 1)}`;

/** @param {Schema} schema @param {Schema} root @returns {Schema} */
function resolve(schema, root) {
  let found = schema;
  for (let hops = 0; hops < 16 && typeof found['$ref'] === 'string'; hops += 1) {
    const path = found['$ref'].split('/').slice(1);
    /** @type {any} */
    let target = root;
    for (const name of path) target = target?.[name.replaceAll('~1', '/').replaceAll('~0', '~')];
    if (!isRecord(target)) return {};
    found = { ...target, ...(found['description'] ? { description: found['description'] } : {}) };
  }
  return found;
}

/** @param {unknown} value @returns {value is Schema} */
const isRecord = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

/** A schema without its `null`, and whether it had one. @param {Schema} schema @param {Schema} root */
function optional(schema, root) {
  const found = resolve(schema, root);
  if (Array.isArray(found['type']) && found['type'].includes('null')) {
    const rest = found['type'].filter((/** @type {string} */ type) => type !== 'null');
    return { nullable: true, schema: { ...found, type: rest.length === 1 ? rest[0] : rest } };
  }
  const several = found['anyOf'] ?? found['oneOf'];
  if (Array.isArray(several) && several.some((one) => one['type'] === 'null')) {
    const rest = several.filter((one) => one['type'] !== 'null');
    if (rest.length === 1) return { nullable: true, schema: resolve({ ...rest[0], description: found['description'] ?? rest[0]['description'] }, root) };
  }
  return { nullable: false, schema: found };
}

/** The texts to choose from, where there are only such. @param {Schema} schema */
function choices(schema) {
  if (Array.isArray(schema['enum']) && schema['enum'].every((one) => typeof one === 'string')) return schema['enum'].map((value) => ({ value, text: value }));
  if (Array.isArray(schema['oneOf']) && schema['oneOf'].length > 0 && schema['oneOf'].every((one) => typeof one['const'] === 'string')) {
    return schema['oneOf'].map((one) => ({ value: one['const'], text: one['description'] ? `${one['const']}: ${one['description']}` : one['const'] }));
  }
  return null;
}

/** @param {Schema} schema */
function bounds(schema) {
  const words = [];
  for (const [name, text] of [['minimum', 'at least'], ['maximum', 'at most'], ['exclusiveMinimum', 'more than'], ['exclusiveMaximum', 'less than']]) {
    const bound = schema[name ?? ''];
    // The limits of an integer's type tell nobody anything.
    if (typeof bound === 'number' && Math.abs(bound) < 2 ** 31) words.push(`${text} ${bound}`);
  }
  if (typeof schema['maxLength'] === 'number') words.push(`at most ${schema['maxLength']} characters`);
  return words.join(', ');
}

/**
 * @param {Schema} schema
 * @param {Schema} root
 * @param {Json | undefined} value
 * @param {{ name: string, required: boolean, depth: number }} at
 * @returns {Field}
 */
function field(schema, root, value, at) {
  const { schema: found, nullable } = optional(schema, root);
  const mayLack = !at.required || nullable;
  const key = id();
  const hint = [typeof found['description'] === 'string' ? found['description'] : '', bounds(found), mayLack ? 'may be left empty' : ''].filter(Boolean).join(' · ');
  const label = (/** @type {HTMLElement} */ input) => {
    input.id = key;
    if (hint) input.setAttribute('aria-describedby', `${key}-hint`);
    return el('div', { class: 'field' }, el('label', { for: key }, at.name), input, hint ? el('p', { class: 'faint hint', id: `${key}-hint` }, hint) : null);
  };
  const nothing = () => (at.required ? (nullable ? null : undefined) : undefined);
  const options = choices(found);
  if (options) {
    const select = el('select', {}, mayLack || value === undefined ? el('option', { value: '' }, '—') : null,
      ...options.map((option) => el('option', { value: option.value, selected: option.value === value }, option.text)));
    return { element: label(select), read: () => {
      if (select.value !== '' || options.some((option) => option.value === '' && value === '')) return select.value;
      if (mayLack) return nothing();
      throw new FormError(`${at.name}: choose one.`, select);
    } };
  }
  switch (found['type']) {
    case 'string': {
      const text = typeof value === 'string' ? value : '';
      const long = text.length > 60 || text.includes('\n') || (found['maxLength'] ?? 0) > 200;
      const input = long ? el('textarea', { rows: 5, spellcheck: 'true' }) : el('input', { type: 'text', autocomplete: 'off' });
      input.value = text;
      return { element: label(input), read: () => (input.value === '' && mayLack && value !== '' ? nothing() : input.value) };
    }
    case 'integer':
    case 'number': {
      const input = el('input', { type: 'text', inputmode: found['type'] === 'integer' ? 'numeric' : 'decimal', autocomplete: 'off', class: 'number' });
      input.value = value instanceof Num ? value.source : '';
      const pattern = found['type'] === 'integer' ? /^-?(0|[1-9]\d*)$/ : /^-?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?$/;
      return { element: label(input), read: () => {
        const text = input.value.trim();
        if (text === '' && mayLack) return nothing();
        if (!pattern.test(text)) throw new FormError(`${at.name}: ${text ? `“${text}” is not` : 'give'} ${found['type'] === 'integer' ? 'a whole number' : 'a number'}.`, input);
        return new Num(text);
      } };
    }
    case 'boolean': {
      const select = el('select', {}, mayLack || typeof value !== 'boolean' ? el('option', { value: '' }, '—') : null,
        el('option', { value: 'true', selected: value === true }, 'Yes'), el('option', { value: 'false', selected: value === false }, 'No'));
      return { element: label(select), read: () => {
        if (select.value !== '') return select.value === 'true';
        if (mayLack) return nothing();
        throw new FormError(`${at.name}: choose yes or no.`, select);
      } };
    }
    case 'object':
      if (isRecord(found['properties']) && at.depth < 4 && !nullable) {
        const inner = object(found, root, value, at.depth + 1);
        return { element: el('fieldset', {}, el('legend', {}, at.name), inner.element), read: inner.read };
      }
      return json(value, at.name, mayLack, label);
    case 'array':
      return list(found, root, value, at, mayLack);
    default:
      return json(value, at.name, mayLack, label);
  }
}

/** @param {Schema} schema @param {Schema} root @param {Json | undefined} value @param {{ name: string, depth: number }} at @param {boolean} mayLack @returns {Field} */
function list(schema, root, value, at, mayLack) {
  const items = isRecord(schema['items']) ? schema['items'] : {};
  const rows = el('div', { class: 'items' });
  /** @type {Field[]} */
  let fields = [];
  const add = (/** @type {Json | undefined} */ item) => {
    const inner = field(items, root, item, { name: `${at.name} ${fields.length + 1}`, required: true, depth: at.depth + 1 });
    const line = el('div', { class: 'item' }, inner.element);
    line.append(el('button', { type: 'button', class: 'quiet', 'aria-label': `Remove ${at.name} ${fields.length + 1}`, onclick: () => {
      fields = fields.filter((one) => one !== inner);
      line.remove();
    } }, 'Remove'));
    fields.push(inner);
    rows.append(line);
  };
  if (Array.isArray(value)) value.forEach(add);
  const element = el('fieldset', {}, el('legend', {}, at.name), rows, el('button', { type: 'button', class: 'quiet', onclick: () => add(undefined) }, 'Add'));
  return { element, read: () => (fields.length === 0 && mayLack && value === undefined ? undefined : fields.map((one) => one.read() ?? null)) };
}

/** @param {Json | undefined} value @param {string} name @param {boolean} mayLack @param {(input: HTMLElement) => HTMLElement} label @returns {Field} */
function json(value, name, mayLack, label) {
  const input = el('textarea', { rows: 6, class: 'code', spellcheck: 'false' });
  input.value = value === undefined ? '' : write(value, '  ');
  return { element: label(input), read: () => {
    if (input.value.trim() === '' && mayLack) return undefined;
    try {
      return parse(input.value);
    } catch (error) {
      throw new FormError(`${name}: ${error instanceof Error ? error.message : 'not JSON'}.`, input);
    }
  } };
}

/** @param {Schema} schema @param {Schema} root @param {Json | undefined} value @param {number} depth @returns {Field} */
function object(schema, root, value, depth) {
  const old = value !== undefined && isObject(value) ? value : {};
  const required = new Set(Array.isArray(schema['required']) ? schema['required'] : []);
  const fields = Object.entries(schema['properties'] ?? {}).map(([name, inner]) =>
    /** @type {[string, Field]} */ ([name, field(isRecord(inner) ? inner : {}, root, old[name], { name, required: required.has(name), depth })]));
  return {
    element: el('div', { class: 'fields' }, ...fields.map(([, inner]) => inner.element)),
    read: () => {
      /** @type {{ [key: string]: Json }} */
      const result = Object.create(null);
      for (const [name, inner] of fields) {
        const read = inner.read();
        if (read !== undefined) result[name] = read;
      }
      return result;
    },
  };
}

/**
 * @param {Schema | null} schema
 * @param {Json | undefined} value
 * @param {string} name
 * @returns {{ element: HTMLElement, read: () => string }} the JSON text
 */
export function form(schema, value, name) {
  const root = schema ?? {};
  const { schema: found } = optional(root, root);
  const whole = found['type'] === 'object' && isRecord(found['properties'])
    ? object(found, root, value, 0)
    : field(root, root, value, { name, required: true, depth: 0 });
  return { element: whole.element, read: () => write(whole.read() ?? null) };
}
