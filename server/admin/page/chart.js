// @ts-check
/** Lines over the last five minutes on a canvas, sharp on any screen, with the values under the pointer. */
import { h, number } from "./dom.js";

const SECONDS = 300;
const LEFT = 44;
const BOTTOM = 18;
const TOP = 8;

/** @typedef {{name: string, color: string, values: Map<number, number>, fill?: boolean}} Series */

export class Chart {
  /** @param {string} title @param {string} unit @param {(value: number) => string} format how values are written */
  constructor(title, unit, format = number) {
    this.title = title;
    this.unit = unit;
    this.format = format;
    /** @type {Series[]} */
    this.series = [];
    this.now = 0;
    /** @type {number | null} */
    this.pointedX = null;
    this.canvas = h("canvas", { role: "img" });
    this.legend = h("div", { class: "legend" });
    this.element = h("figure", { class: "chart" }, h("figcaption", {}, h("h2", {}, title), this.legend), this.canvas);
    this.canvas.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => this.point(event.offsetX));
    this.canvas.addEventListener("pointerleave", () => this.point(null));
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  /** @param {Series[]} series @param {number} now the last second to show */
  show(series, now) {
    this.series = series;
    this.now = now;
    this.draw();
  }

  /** @param {number | null} x */
  point(x) {
    this.pointedX = x;
    this.draw();
  }

  draw() {
    const { canvas } = this;
    const width = canvas.clientWidth;
    const height = canvas.clientHeight;
    if (!width || !this.now) return;
    const scale = devicePixelRatio || 1;
    if (canvas.width !== Math.round(width * scale)) canvas.width = Math.round(width * scale);
    if (canvas.height !== Math.round(height * scale)) canvas.height = Math.round(height * scale);
    const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    const style = getComputedStyle(canvas);
    pen.setTransform(scale, 0, 0, scale, 0, 0);
    pen.clearRect(0, 0, width, height);
    const start = this.now - SECONDS;
    const largest = Math.max(1, ...this.series.flatMap(({ values }) => inSight(values, start)));
    const ceiling = niceCeiling(largest);
    const x = (/** @type {number} */ second) => LEFT + ((second - start) / SECONDS) * (width - LEFT - 2);
    const y = (/** @type {number} */ value) => TOP + (1 - value / ceiling) * (height - TOP - BOTTOM);
    this.axes(pen, style, { x, y, width, height, ceiling, start });
    for (const series of this.series) this.line(pen, style, series, x, y, start);
    const pointed = this.pointedX === null ? this.now
      : Math.round(start + ((this.pointedX - LEFT) / (width - LEFT - 2)) * SECONDS);
    if (this.pointedX !== null && this.pointedX >= LEFT) {
      pen.strokeStyle = style.getPropertyValue("--muted");
      pen.lineWidth = 1;
      pen.beginPath();
      pen.moveTo(x(pointed), TOP);
      pen.lineTo(x(pointed), height - BOTTOM);
      pen.stroke();
    }
    this.label(pointed, largest);
  }

  /**
   * @param {CanvasRenderingContext2D} pen
   * @param {CSSStyleDeclaration} style
   * @param {any} scale
   */
  axes(pen, style, { x, y, width, height, ceiling, start }) {
    pen.font = `11px ${style.fontFamily}`;
    pen.fillStyle = style.getPropertyValue("--muted");
    pen.strokeStyle = style.getPropertyValue("--line");
    pen.lineWidth = 1;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    for (const part of [0, 0.5, 1]) {
      const at = Math.round(y(ceiling * part)) + 0.5;
      pen.beginPath();
      pen.moveTo(LEFT, at);
      pen.lineTo(width, at);
      pen.stroke();
      pen.fillText(this.format(ceiling * part), LEFT - 8, at);
    }
    pen.textBaseline = "alphabetic";
    for (const minute of width < 400 ? [0, 3, 5] : [0, 1, 2, 3, 4, 5]) {
      pen.textAlign = minute === 0 ? "left" : minute === 5 ? "right" : "center";
      pen.fillText(minute === 5 ? "now" : `−${5 - minute} min`, x(start + minute * 60), height - 4);
    }
  }

  /**
   * @param {CanvasRenderingContext2D} pen
   * @param {CSSStyleDeclaration} style
   * @param {Series} series
   * @param {(second: number) => number} x
   * @param {(value: number) => number} y
   * @param {number} start
   */
  line(pen, style, { values, color, fill }, x, y, start) {
    pen.strokeStyle = pen.fillStyle = style.getPropertyValue(color);
    pen.lineWidth = 1.5;
    pen.lineJoin = "round";
    const path = new Path2D();
    let begun = false;
    let lastX = 0;
    for (let second = start; second <= this.now; second++) {
      const value = values.get(second);
      if (value === undefined) { begun = false; continue; }
      lastX = x(second);
      if (begun) path.lineTo(lastX, y(value));
      else path.moveTo(lastX, y(value));
      begun = true;
    }
    pen.stroke(path);
    if (!fill || !lastX) return;
    const first = [...values.keys()].find((second) => second >= start) ?? start;
    path.lineTo(lastX, y(0));
    path.lineTo(x(first), y(0));
    pen.globalAlpha = 0.12;
    pen.fill(path);
    pen.globalAlpha = 1;
  }

  /** @param {number} second @param {number} largest */
  label(second, largest) {
    const values = this.series.map(({ name, color, values }) => {
      const value = values.get(second);
      return { name, color, value: value === undefined ? "–" : this.format(value) };
    });
    this.legend.replaceChildren(
      ...values.map(({ name, color, value }) => h("span", {}, h("i", { class: `swatch ${color.slice(2)}` }), `${name} `, h("b", {}, value))),
      h("span", { class: "note" }, this.unit));
    const now = values.map(({ name, value }) => `${name} ${value}`).join(", ");
    this.canvas.setAttribute("aria-label", `${this.title} (${this.unit}): ${now}; at most ${this.format(largest)} in the last five minutes`);
  }
}

/** @param {Map<number, number>} values @param {number} start */
function inSight(values, start) {
  return [...values].filter(([second]) => second >= start).map(([, value]) => value);
}

/** The next round number. @param {number} value */
function niceCeiling(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 3, 4, 6, 8, 10].map((step) => step * power).find((step) => step >= value) ?? value;
}
