// JSON without loss: a number keeps the digits that it was written with, since a browser's own
// numbers round integers beyond 2^53, and what is approved is what was written.

/** A number as it was written. */
export class Num {
  /** @param {string} source */
  constructor(source) {
    this.source = source;
  }

  toString() {
    return this.source;
  }
}

/** @typedef {null | boolean | string | Num | Json[] | { [key: string]: Json }} Json */

/**
 * @param {string} text
 * @returns {Json}
 */
export function parse(text) {
  let at = 0;

  /** @param {string} what @returns {never} */
  const fail = (what) => {
    throw new SyntaxError(`${what} at character ${at + 1}`);
  };
  const space = () => {
    while (at < text.length && ' \t\n\r'.includes(text[at] ?? '')) at += 1;
  };
  /** @param {RegExp} pattern */
  const take = (pattern) => {
    pattern.lastIndex = at;
    const found = pattern.exec(text)?.[0];
    if (found !== undefined) at += found.length;
    return found;
  };
  /** @returns {string} */
  const string = () => {
    const found = take(/"(?:[^"\\\u0000-\u001f]|\\.)*"/suy);
    return found === undefined ? fail('a string was expected') : JSON.parse(found);
  };
  /** @param {number} depth @returns {Json} */
  const value = (depth) => {
    if (depth > 200) fail('nested too deeply');
    space();
    const next = text[at];
    if (next === '{') return object(depth);
    if (next === '[') return array(depth);
    if (next === '"') return string();
    const word = take(/true|false|null/y);
    if (word !== undefined) return word === 'null' ? null : word === 'true';
    const number = take(/-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y);
    return number === undefined ? fail('a value was expected') : new Num(number);
  };
  /** @param {number} depth @returns {Json} */
  const object = (depth) => {
    /** @type {{ [key: string]: Json }} */
    const result = Object.create(null);
    at += 1;
    space();
    if (text[at] === '}') {
      at += 1;
      return result;
    }
    for (;;) {
      space();
      const key = string();
      if (key in result) fail(`the key ${JSON.stringify(key)} stands twice`);
      space();
      if (text[at] !== ':') fail('a colon was expected');
      at += 1;
      result[key] = value(depth + 1);
      space();
      const next = text[at];
      at += 1;
      if (next === '}') return result;
      if (next !== ',') {
        at -= 1;
        fail('a comma or `}` was expected');
      }
    }
  };
  /** @param {number} depth @returns {Json} */
  const array = (depth) => {
    /** @type {Json[]} */
    const result = [];
    at += 1;
    space();
    if (text[at] === ']') {
      at += 1;
      return result;
    }
    for (;;) {
      result.push(value(depth + 1));
      space();
      const next = text[at];
      at += 1;
      if (next === ']') return result;
      if (next !== ',') {
        at -= 1;
        fail('a comma or `]` was expected');
      }
    }
  };

  const result = value(0);
  space();
  if (at < text.length) fail('nothing more was expected');
  return result;
}

/** @param {Json} value @returns {value is { [key: string]: Json }} */
export const isObject = (value) =>
  typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Num);

/**
 * @param {Json} value
 * @param {string} [indent] for reading; none for sending
 * @param {string} [margin]
 * @returns {string}
 */
export function write(value, indent = '', margin = '') {
  if (value instanceof Num) return value.source;
  const inner = margin + indent;
  const [open, between, close] = indent ? [`\n${inner}`, `,\n${inner}`, `\n${margin}`] : ['', ',', ''];
  if (Array.isArray(value)) {
    if (value.length === 0) return '[]';
    return `[${open}${value.map((item) => write(item, indent, inner)).join(between)}${close}]`;
  }
  if (isObject(value)) {
    const entries = Object.entries(value);
    if (entries.length === 0) return '{}';
    const colon = indent ? ': ' : ':';
    const pairs = entries.map(([key, item]) => JSON.stringify(key) + colon + write(item, indent, inner));
    return `{${open}${pairs.join(between)}${close}}`;
  }
  return JSON.stringify(value);
}

/** @param {Json | undefined} one @param {Json | undefined} other */
export const same = (one, other) =>
  one === undefined || other === undefined ? one === other : write(one) === write(other);
