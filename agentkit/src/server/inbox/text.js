// Text that a stranger wrote, made safe to read: what cannot be seen is shown, what looks like
// something else is marked, what is endless is cut.

import { el } from './dom.js';

/** Control, format, bidirectional and other characters that show nothing or not themselves. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Co}\p{Cn}\p{Cs}\p{Zl}\p{Zp}\u115f\u1160\u3164\uffa0\u{e0100}-\u{e01ef}\ufe00-\ufe0d]|(?! )\p{Zs}|(?<=\p{M}{2})\p{M}/u;

/** @type {Record<number, string>} */
const NAMES = {
  0x00: 'null', 0x07: 'bell', 0x08: 'backspace', 0x09: 'tab', 0x0a: 'new line', 0x0d: 'carriage return',
  0x1b: 'escape', 0x7f: 'delete', 0xa0: 'no-break space', 0xad: 'soft hyphen', 0x61c: 'arabic letter mark',
  0x200b: 'zero width space', 0x200c: 'zero width non-joiner', 0x200d: 'zero width joiner',
  0x200e: 'left-to-right mark', 0x200f: 'right-to-left mark', 0x2028: 'line separator',
  0x2029: 'paragraph separator', 0x202a: 'left-to-right embedding', 0x202b: 'right-to-left embedding',
  0x202c: 'pop directional formatting', 0x202d: 'left-to-right override', 0x202e: 'right-to-left override',
  0x2060: 'word joiner', 0x2066: 'left-to-right isolate', 0x2067: 'right-to-left isolate',
  0x2068: 'first strong isolate', 0x2069: 'pop directional isolate', 0xfeff: 'byte order mark',
};

/** Letters of other scripts that pass for Latin ones. */
const LOOKALIKES = new Set('аеорсухіјѕһԁԛԝӏґАВЕЗКМНОРСТУХІЈЅΑΒΕΖΗΙΚΜΝΟΡΤΥΧοανρυιԌɡɩօսոցհզԱՏՕ');

const WORD = /[\p{L}\p{M}\p{N}]+/gu;
const LATIN = /\p{Script=Latin}/u;
const OTHER = /[\p{Script=Cyrillic}\p{Script=Greek}\p{Script=Armenian}\p{Script=Cherokee}]/u;

/** @param {string} word whether it mixes scripts that look alike, or only looks Latin */
export function isConfusable(word) {
  if (!OTHER.test(word)) return false;
  if (LATIN.test(word)) return true;
  const letters = [...word].filter((letter) => /\p{L}/u.test(letter));
  return letters.every((letter) => LOOKALIKES.has(letter));
}

/** @param {string} character */
function shown(character) {
  const code = character.codePointAt(0) ?? 0;
  const number = `U+${code.toString(16).toUpperCase().padStart(4, '0')}`;
  const name = NAMES[code];
  const title = name ? `${number}, ${name}` : number;
  return el('span', { class: 'unseen', title }, number);
}

/** Longest text that is shown without asking. */
const LONG = 1500;

/**
 * @param {string} text
 * @param {{ lines?: boolean, limit?: number }} [options] `lines` keeps new lines as such
 * @returns {HTMLElement}
 */
export function reveal(text, { lines = false, limit = LONG } = {}) {
  const box = el('span', { class: lines ? 'stranger lines' : 'stranger', dir: 'ltr' });
  const characters = text.length > limit ? [...text] : null;
  if (characters && characters.length > limit) {
    pieces(box, characters.slice(0, limit).join(''), lines);
    const rest = characters.length - limit;
    const more = el('button', { type: 'button', class: 'more' }, `… show ${rest.toLocaleString('en')} more characters`);
    more.addEventListener('click', () => {
      more.remove();
      pieces(box, characters.slice(limit).join(''), lines);
    });
    box.append(more);
  } else {
    pieces(box, text, lines);
  }
  return box;
}

/** @param {HTMLElement} box @param {string} text @param {boolean} lines */
function pieces(box, text, lines) {
  let last = 0;
  for (const found of text.matchAll(WORD)) {
    if (!isConfusable(found[0])) continue;
    seen(box, text.slice(last, found.index), lines);
    const codes = [...found[0]].filter((letter) => OTHER.test(letter));
    const listed = codes.map((letter) => `${letter} is U+${(letter.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`);
    const title = `Looks like other letters: ${listed.join(', ')}`;
    const word = el('span', { class: 'confusable', title });
    seen(word, found[0], lines);
    word.append(el('span', { class: 'visually-hidden' }, ' (looks like other letters)'));
    box.append(word);
    last = found.index + found[0].length;
  }
  seen(box, text.slice(last), lines);
}

/** @param {HTMLElement} box @param {string} text @param {boolean} lines */
function seen(box, text, lines) {
  let plain = '';
  let before = '';
  for (const character of text) {
    const marks = /\p{M}/u.test(character) && /^\p{M}{2}$/u.test(before);
    const hidden = marks || (UNSEEN.test(character) && !(lines && character === '\n'));
    if (hidden) {
      if (plain) box.append(plain);
      plain = '';
      box.append(shown(character));
    } else {
      plain += character;
    }
    before = (before + character).slice(-2);
  }
  if (plain) box.append(plain);
}

/** What a reader should be told about a text, in words. @param {string} text */
export function warnings(text) {
  /** @type {string[]} */
  const found = [];
  const without = text.replace(/[\n\t]/g, '');
  if (/[\u202a-\u202e\u2066-\u2069\u200e\u200f\u061c]/u.test(without)) found.push('characters that reorder text');
  else if ([...without].some((character) => UNSEEN.test(character))) found.push('characters that cannot be seen');
  if ([...text.matchAll(WORD)].some(([word]) => isConfusable(word))) found.push('letters that look like others');
  return found;
}

const RELATIVE = new Intl.RelativeTimeFormat('en', { numeric: 'always', style: 'narrow' });

/** @param {string} time @param {number} [now] */
export function ago(time, now = Date.now()) {
  const seconds = Math.round((Date.parse(time) - now) / 1000);
  const size = Math.abs(seconds);
  if (size < 60) return RELATIVE.format(seconds, 'second');
  if (size < 3600) return RELATIVE.format(Math.trunc(seconds / 60), 'minute');
  if (size < 86400 * 2) return RELATIVE.format(Math.trunc(seconds / 3600), 'hour');
  return RELATIVE.format(Math.trunc(seconds / 86400), 'day');
}

const FULL = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'medium' });

/** @param {string} time */
export const full = (time) => FULL.format(new Date(time));
