// Building elements. Text is only ever text: nothing here can make markup of a string.

/** @typedef {Node | string | null | undefined | false} Child */

/**
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, unknown>} [attributes] `on…` are listeners, `class` a class
 * @param {...Child} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith('on')) {
      element.addEventListener(name.slice(2), /** @type {EventListener} */ (value));
    } else {
      element.setAttribute(name, value === true ? '' : String(value));
    }
  }
  element.append(...present(children));
  return element;
}

/** @param {Child[]} children @returns {(Node | string)[]} */
const present = (children) =>
  /** @type {(Node | string)[]} */ (children.filter((child) => child !== null && child !== undefined && child !== false));

/**
 * The element of this id, which the page has.
 * @param {string} id
 * @returns {HTMLElement}
 */
export function by(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found;
}

/** @param {Element} element @param {...Child} children */
export function fill(element, ...children) {
  element.replaceChildren(...present(children));
}

/** Tells people who do not see it. @param {string} text */
export function say(text) {
  by('say').textContent = text;
}

/** @param {string} text @param {'good' | 'bad' | 'plain'} [tone] */
export function toast(text, tone = 'plain') {
  const note = el('p', { class: `toast ${tone}` }, text);
  by('toasts').append(note);
  say(text);
  setTimeout(() => note.remove(), 6000);
}
