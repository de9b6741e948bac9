// @ts-check
/** Elements without markup: every string becomes a text node, so nothing that a client sends is parsed as HTML. */

/** @typedef {string | number | null | undefined | false | Node} Child */

/**
 * Text in which control characters, and those that change the direction of text, are JSON's escapes.
 * @param {string} text
 */
export const printable = (text) => text.replace(/(?![\n\t])[\p{Cc}\p{Cf}]/gu, (character) =>
  character.split("").map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`).join(""));

/**
 * An element. Attributes that are functions listen (`onclick`), true is an empty attribute, false and null are none.
 * @param {string} tag
 * @param {Record<string, any>} [attributes]
 * @param {...(Child | Child[])} children
 * @returns {any}
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === "function") element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) element.setAttribute(name, printable(String(value)));
  }
  fill(element, ...children);
  return element;
}

/**
 * Replace the children of an element.
 * @param {Element} element
 * @param {...(Child | Child[])} children
 */
export function fill(element, ...children) {
  const kept = children.flat().filter((child) => child !== null && child !== undefined && child !== false);
  element.replaceChildren(...kept.map((child) => (child instanceof Node ? child : printable(String(child)))));
}

/**
 * Set a text only where it differs, so that selections and screen readers are not disturbed.
 * @param {Element} element
 * @param {string} text
 */
export function setText(element, text) {
  const shown = printable(text);
  if (element.textContent !== shown) element.textContent = shown;
}

/**
 * One child per item, created once and updated, so that focus survives a refresh.
 * @template T
 * @param {Element} container
 * @param {(item: T) => string} keyOf
 * @param {(item: T) => {element: Element, update: (item: T) => void}} make
 * @returns {(items: T[]) => void}
 */
export function eachOf(container, keyOf, make) {
  /** @type {Map<string, {element: Element, update: (item: T) => void}>} */
  let made = new Map();
  return (items) => {
    const next = new Map();
    for (const item of items) {
      const key = keyOf(item);
      const one = made.get(key) ?? make(item);
      one.update(item);
      next.set(key, one);
    }
    for (const [key, one] of made) if (!next.has(key)) one.element.remove();
    /** @type {Element | null} */
    let place = container.firstElementChild;
    for (const { element } of next.values()) {
      if (element === place) place = element.nextElementSibling;
      else container.insertBefore(element, place);
    }
    made = next;
  };
}

const NUMBER = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1 });

/** @param {number | null | undefined} value */
export const number = (value) => (value === null || value === undefined ? "–" : NUMBER.format(value));

const WITH_DIGITS = [0, 1, 2, 3].map((digits) => new Intl.NumberFormat("en-US", { maximumFractionDigits: digits }));

/** Microseconds as milliseconds with three digits that count: 0.142, 1.42, 14.2, 142. @param {number} us */
export const milliseconds = (us) =>
  WITH_DIGITS[us < 1_000 ? 3 : us < 10_000 ? 2 : us < 100_000 ? 1 : 0].format(us / 1_000);

/** A count with its noun. @param {number} count @param {string} noun */
export const many = (count, noun) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`;

/** Time of day with milliseconds, of the controller's clock. @param {number | null | undefined} ms */
export function clockTime(ms) {
  if (ms === null || ms === undefined) return "–";
  const at = new Date(ms);
  const two = (/** @type {number} */ part) => String(part).padStart(2, "0");
  const seconds = `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
  return `${seconds}.${String(at.getMilliseconds()).padStart(3, "0")}`;
}

/** A name that may be broken between its words: BrokerHeartbeat, POLICY_VIOLATION. @param {string} name */
export const inWords = (name) => name.split(/(?<=[a-z])(?=[A-Z])|(?<=_)/).flatMap((word, at) => (at ? [h("wbr"), word] : [word]));

/** Announce an event, visibly and to screen readers. @param {string} text @param {"good" | "bad"} [tone] */
export function announce(text, tone = "good") {
  const place = document.getElementById("announcement");
  if (!place) return;
  place.className = `shown ${tone}`;
  place.textContent = printable(text);
  clearTimeout(Number(place.dataset.timer));
  place.dataset.timer = String(setTimeout(() => { place.className = ""; }, 5000));
}
