// @ts-check
/** Server-sent events by fetch, which unlike EventSource can send a token; it reconnects when the connection ends. */
import { request } from "./api.js";

const AGAIN_MS = 1000;

/**
 * Follow a stream for as long as the page lives.
 * @param {() => string} path called for each connection
 * @param {(event: string, data: any) => void} onEvent
 * @param {(isOpen: boolean) => void} onState
 */
export async function follow(path, onEvent, onState) {
  for (;;) {
    try {
      const response = await request(path(), { headers: { accept: "text/event-stream" } });
      onState(true);
      await readEvents(/** @type {ReadableStream<Uint8Array>} */ (response.body), onEvent);
    } catch {
      // The server is not reachable: the next round tries again; the health bar shows it meanwhile.
    }
    onState(false);
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

/**
 * @param {ReadableStream<Uint8Array>} body
 * @param {(event: string, data: any) => void} onEvent
 */
async function readEvents(body, onEvent) {
  const reader = body.pipeThrough(/** @type {any} */ (new TextDecoderStream())).getReader();
  let held = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (held + value.replaceAll("\r", "")).split("\n\n");
    held = blocks.pop() ?? "";
    for (const block of blocks) {
      const lines = block.split("\n");
      const event = lines.find((line) => line.startsWith("event:"))?.slice(6).trim() ?? "message";
      const data = lines.filter((line) => line.startsWith("data:")).map((line) => line.slice(5)).join("\n");
      if (data) onEvent(event, JSON.parse(data));
    }
  }
}
