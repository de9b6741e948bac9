// @ts-check
/** The HTTP API as this page uses it; errors are Problems (RFC 9457), a missing token is requested once. */
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
 * Return a successful response; request the token if the server requires one.
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
  const options = body === undefined ? {} : { body: JSON.stringify(body), headers: { "content-type": "application/json" } };
  const response = await request(path, { method, ...options });
  const text = await response.text();
  return text ? JSON.parse(text) : null;
}

/** @param {boolean} wasWrong @returns {Promise<void>} */
function askToken(wasWrong) {
  return new Promise((resolve) => {
    const field = h("input", { id: "token", type: "password", autocomplete: "off", required: true });
    const dialog = h("dialog", { class: "sheet", "aria-labelledby": "token-title" },
      h("form", { method: "dialog" },
        h("h2", { id: "token-title" }, "This controller requires a token"),
        wasWrong && h("p", { class: "error", role: "alert" }, "That token was refused."),
        h("label", { for: "token" }, "Token"), field,
        h("p", { class: "note" }, "The content of the file given as --admin-token-file; it is kept until this tab is closed."),
        h("button", { class: "main" }, "Continue")));
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
