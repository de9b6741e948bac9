// @ts-check
/** The newest lines of the journal: a bounded ring, counts by second for the charts, and listeners. */
import { get } from "./api.js";
import { follow } from "./stream.js";

export const LINES_MAX = 10_000;
const SECONDS_KEPT = 300;
const SLOW_ON_PURPOSE = "Fetch";

/**
 * @typedef {object} Line
 * @property {number} id
 * @property {number} node
 * @property {number} connection
 * @property {number} receivedMs
 * @property {number} answeredMs
 * @property {number} tookUs
 * @property {string} api
 * @property {number} apiVersion
 * @property {string | null} clientId
 * @property {number | null} brokerId
 * @property {boolean} forwarded
 * @property {boolean} atBroker
 * @property {string} servedBy
 * @property {string | null} matched
 * @property {boolean} unmatched
 * @property {string | null} reason
 * @property {string | null} error
 * @property {string | null} failure
 */

/** @typedef {{second: number, controller: number, stub: number, took: number[]}} Second `took` is in microseconds */

/** @param {Line} line */
export const lineKey = (line) => String(line.id);

/** True if a stub answered or changed the controller's answer. @param {Line} line */
export const isStubbed = (line) => !["controller", "broker"].includes(line.servedBy) || line.matched !== null;

/** @param {Line} line */
export const answeredBy = (line) => {
  const server = line.atBroker && line.servedBy === "broker" ? `broker ${line.node}` : line.servedBy;
  return line.matched && !server.startsWith("stub ") ? `${server} via ${line.matched}` : server;
};

class RequestsSeen {
  constructor() {
    /** @type {Line[]} oldest first */
    this.lines = [];
    /** Number of lines so far, including those before the page was opened. */
    this.total = 0;
    this.isOpen = false;
    /** @type {Map<number, Second>} */
    this.seconds = new Map();
    /** The controller's time, from the newest line. */
    this.latestMs = 0;
    /** @type {Set<() => void>} */
    this.listeners = new Set();
    this.lastId = 0;
  }

  /** Load what the journal holds, then follow it. */
  async start() {
    await get(`v1/requests?limit=${LINES_MAX}`).then(({ requests }) => this.take(requests)).catch(() => {});
    follow(
      () => `v1/requests/stream?afterId=${this.lastId}`,
      (event, data) => event === "requests" && this.take(data.requests),
      (isOpen) => { this.isOpen = isOpen; this.notify(); },
    );
  }

  /** @param {Line[]} lines */
  take(lines) {
    for (const line of lines) {
      this.lines.push(line);
      this.lastId = line.id;
      this.count(line);
    }
    this.total += lines.length;
    if (this.lines.length > LINES_MAX * 1.1) this.lines = this.lines.slice(-LINES_MAX);
    this.notify();
  }

  /** @param {Line} line */
  count(line) {
    const second = Math.floor(line.answeredMs / 1000);
    let at = this.seconds.get(second);
    if (!at) {
      at = { second, controller: 0, stub: 0, took: [] };
      this.seconds.set(second, at);
      if (this.seconds.size > SECONDS_KEPT + 10) this.forgetBefore(second - SECONDS_KEPT);
    }
    at[isStubbed(line) ? "stub" : "controller"] += 1;
    if (line.api !== SLOW_ON_PURPOSE) at.took.push(line.tookUs);
    this.latestMs = Math.max(this.latestMs, line.answeredMs);
  }

  /** @param {number} second */
  forgetBefore(second) {
    for (const one of this.seconds.keys()) if (one < second) this.seconds.delete(one);
  }

  clear() {
    this.lines = [];
    this.notify();
  }

  notify() {
    for (const listener of this.listeners) listener();
  }

  /** Requests a second over the last full five. @param {number} nowMs */
  rate(nowMs) {
    const now = Math.floor(nowMs / 1000);
    let sum = 0;
    for (let back = 1; back <= 5; back++) {
      const at = this.seconds.get(now - back);
      sum += at ? at.controller + at.stub : 0;
    }
    return sum / 5;
  }
}

export const seen = new RequestsSeen();
