// @ts-check
/**
 * A grid of many rows, of which only the visible ones are in the document. Rows have one height; arrow keys, Page Up and
 * Down, Home and End move the active row, Enter opens it. New rows above do not move the visible rows.
 */
import { fill, h } from "./dom.js";

const BEYOND = 6;

/**
 * @template T
 * @typedef {object} Column
 * @property {string} name
 * @property {string} [kind] class of the cells: "num", "grow", "minor" (not on a phone)
 * @property {(item: T) => import("./dom.js").Child | import("./dom.js").Child[]} cell
 */

/** @template T */
export class VirtualList {
  /**
   * @param {object} options
   * @param {string} options.label
   * @param {Column<T>[]} options.columns
   * @param {(item: T) => string} options.keyOf
   * @param {(item: T) => string} [options.rowClass]
   * @param {(item: T) => void} [options.onOpen]
   * @param {(item: T) => void} [options.onActive]
   * @param {string} [options.empty]
   */
  constructor({ label, columns, keyOf, rowClass = () => "", onOpen = () => {}, onActive = () => {}, empty = "Nothing here." }) {
    this.columns = columns;
    this.keyOf = keyOf;
    this.rowClass = rowClass;
    this.onOpen = onOpen;
    this.onActive = onActive;
    /** @type {T[]} */
    this.items = [];
    this.rowHeight = 28;
    /** @type {string | null} */
    this.activeKey = null;
    /** @type {Map<string, {row: HTMLElement, item: T, index: number}>} */
    this.rows = new Map();
    this.id = `list-${label.toLowerCase().replaceAll(" ", "-")}`;
    this.body = h("div", { class: "rows", role: "rowgroup" });
    const names = columns.map(({ name, kind = "" }) => h("div", { role: "columnheader", class: kind }, name));
    this.head = h("div", { role: "rowgroup", class: "head" }, h("div", { role: "row", class: "row", "aria-rowindex": "1" }, names));
    // What scrolls has the focus: browsers and screen readers move it by the keyboard.
    this.viewport = h("div", { class: "viewport", role: "grid", tabindex: "0", "aria-label": label, id: this.id, onscroll: () => this.draw() },
      this.head, this.body);
    this.nothing = h("p", { class: "empty", hidden: true }, empty);
    this.element = h("div", { class: "grid" }, this.viewport, this.nothing);
    this.viewport.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => this.key(event));
    this.body.addEventListener("click", (/** @type {MouseEvent} */ event) => this.click(event));
    new ResizeObserver(() => this.measure()).observe(this.viewport);
  }

  focus() {
    this.viewport.focus();
  }

  /** Height of the rows in sight, below the head, which stays. */
  get height() {
    return this.viewport.clientHeight - this.head.offsetHeight;
  }

  /** Read again when the layout may have changed, not for each frame. */
  measure() {
    this.rowHeight = parseFloat(getComputedStyle(this.element).getPropertyValue("--row")) || 28;
    this.body.style.height = `${this.items.length * this.rowHeight}px`;
    this.draw();
  }

  /** True if the newest rows, at the top, are visible. */
  get isAtTop() {
    return this.viewport.scrollTop < this.rowHeight / 2;
  }

  /**
   * @param {T[]} items
   * @param {number} [addedAbove] number of new ones at the top
   */
  show(items, addedAbove = 0) {
    const hold = addedAbove > 0 && (!this.isAtTop || this.activeKey !== null);
    this.items = items;
    this.nothing.hidden = items.length > 0;
    this.viewport.setAttribute("aria-rowcount", String(items.length + 1));
    this.body.style.height = `${items.length * this.rowHeight}px`;
    if (hold) this.viewport.scrollTop += addedAbove * this.rowHeight;
    this.draw();
  }

  draw() {
    const height = this.rowHeight;
    const top = this.viewport.scrollTop;
    const first = Math.max(0, Math.floor(top / height) - BEYOND);
    const last = Math.min(this.items.length, Math.ceil((top + this.height) / height) + BEYOND);
    const wanted = new Map();
    for (let index = first; index < last; index++) wanted.set(this.keyOf(this.items[index]), index);
    for (const [key, { row }] of this.rows) {
      if (wanted.has(key)) continue;
      row.remove();
      this.rows.delete(key);
    }
    for (const [key, index] of wanted) this.place(key, index);
    const active = this.activeKey !== null ? this.rows.get(this.activeKey) : undefined;
    if (active) this.viewport.setAttribute("aria-activedescendant", active.row.id);
    else this.viewport.removeAttribute("aria-activedescendant");
  }

  /** @param {string} key @param {number} index */
  place(key, index) {
    const item = this.items[index];
    let held = this.rows.get(key);
    if (!held) {
      held = { row: h("div", { role: "row", id: `${this.id}-${key}` }), item: /** @type {any} */ (null), index: -1 };
      held.row.dataset.key = key;
      this.rows.set(key, held);
      this.body.append(held.row);
    }
    if (held.item !== item) {
      fill(held.row, this.columns.map(({ kind = "", cell }) => h("div", { role: "gridcell", class: kind }, cell(item))));
      held.item = item;
    }
    const isActive = key === this.activeKey;
    held.row.className = `row ${this.rowClass(item)}${isActive ? " active" : ""}`;
    held.row.setAttribute("aria-selected", String(isActive));
    if (held.index !== index) {
      held.index = index;
      held.row.setAttribute("aria-rowindex", String(index + 2));
      held.row.style.transform = `translateY(calc(${index} * var(--row)))`;
    }
  }

  /** @param {number} index */
  activate(index) {
    const at = Math.max(0, Math.min(this.items.length - 1, index));
    if (!this.items.length) return;
    this.activeKey = this.keyOf(this.items[at]);
    const { rowHeight: height, viewport } = this;
    if (at * height < viewport.scrollTop) viewport.scrollTop = at * height;
    const below = (at + 1) * height - this.height;
    if (below > viewport.scrollTop) viewport.scrollTop = below;
    this.draw();
  }

  /** Deactivate the row and follow new ones again. */
  release() {
    this.activeKey = null;
    this.draw();
  }

  get activeIndex() {
    return this.activeKey === null ? -1 : this.items.findIndex((item) => this.keyOf(item) === this.activeKey);
  }

  /** @param {KeyboardEvent} event */
  key(event) {
    if (event.target !== this.viewport || event.altKey || event.ctrlKey || event.metaKey) return;
    const at = this.activeIndex;
    const page = Math.max(1, Math.floor(this.height / this.rowHeight) - 1);
    const to = { ArrowDown: at + 1, j: at + 1, ArrowUp: at - 1, k: at - 1, PageDown: at + page, PageUp: at - page,
      Home: 0, End: this.items.length - 1 }[event.key];
    if (to !== undefined && this.items.length) {
      this.activate(to);
      this.onActive(this.items[this.activeIndex]);
    }
    else if (event.key === "Enter" && at >= 0) this.onOpen(this.items[at]);
    else if (event.key === "Escape" && at >= 0) this.release();
    else return;
    event.preventDefault();
  }

  /** @param {MouseEvent} event */
  click(event) {
    const target = /** @type {HTMLElement} */ (event.target);
    const key = /** @type {HTMLElement | null} */ (target.closest("[data-key]"))?.dataset.key;
    const index = this.items.findIndex((item) => this.keyOf(item) === key);
    if (index < 0 || target.closest("button, a, input")) return;
    this.activate(index);
    this.onOpen(this.items[index]);
  }
}
