// @ts-check
/** The HTTP API as this page uses it; a refusal is a Problem (RFC 9457), a missing token is asked for once. */
import { h } from "./dom.js";

const TOKEN = "mockraft-token";

export class Problem extends Error {
  /** @param {number} status @param {any} body */
  constructor(status, body) {
    super(body.detail || body.title || `HTTP ${status}`);
    this.status = status;
    /** @type {{field: string, detail: string}[]} */
    this.fields = (body.errors ?? []).map((/** @type {any} */ one) => ({
      field: String(one.pointer ?? one.parameter ?? ""),
      detail: String(one.detail ?? ""),
    }));
  }
}

/** @type {Promise<void> | null} */
let asking = null;

/**
 * A response that is well; the token is asked for when the server wants one.
 * @param {string} path
 * @param {RequestInit} [options]
 * @returns {Promise<Response>}
 */
export async function request(path, options = {}) {
  for (;;) {
    const token = sessionStorage.getItem(TOKEN);
    const headers = { ...options.headers, ...(token ? { authorization: `Bearer ${token}` } : {}) };
    const response = await fetch(path, { ...options, headers });
    if (response.ok) return response;
    if (response.status !== 401) throw new Problem(response.status, await response.json().catch(() => ({})));
    if (sessionStorage.getItem(TOKEN) === token) {
      sessionStorage.removeItem(TOKEN);
      asking ??= askToken(token !== null).finally(() => { asking = null; });
    }
    await asking;
  }
}

/** @param {string} path @returns {Promise<any>} */
export async function get(path) {
  return (await request(path)).json();
}

/**
 * @param {"POST" | "PUT" | "PATCH" | "DELETE"} method
 * @param {string} path
 * @param {any} [body]
 * @returns {Promise<any>}
 */
export async function send(method, path, body) {
  const said = body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } };
  const response = await request(path, { method, ...said });
  const text = await response.text();
  return text ? JSON.parse(text) : null;
}

/** @param {boolean} wasWrong @returns {Promise<void>} */
function askToken(wasWrong) {
  return new Promise((resolve) => {
    const field = h("input", { id: "token", type: "password", autocomplete: "off", required: true });
    const dialog = h("dialog", { class: "sheet", "aria-labelledby": "token-title" },
      h("form", { method: "dialog" },
        h("h2", { id: "token-title" }, "This controller wants a token"),
        wasWrong && h("p", { class: "error", role: "alert" }, "That token was refused."),
        h("label", { for: "token" }, "Token"), field,
        h("p", { class: "note" }, "It is what the file of --admin-token-file holds, and is kept until this tab closes."),
        h("button", { class: "main" }, "Go on")));
    dialog.addEventListener("cancel", (/** @type {Event} */ event) => event.preventDefault());
    dialog.addEventListener("close", () => {
      sessionStorage.setItem(TOKEN, field.value);
      dialog.remove();
      resolve();
    });
    document.body.append(dialog);
    dialog.showModal();
  });
}
