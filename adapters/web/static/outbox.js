// What was typed and is not stored yet. It lives in localStorage until the server
// has answered 202, so that neither a reload nor a restart of parley loses it;
// the server counts each id once, however often it is sent.

import { newID, post, Refused } from './stream.js';

const KEY = 'parley.outbox';
const MAX_BYTES = 1_000_000;
const LONGEST_WAIT = 10_000;

export class Outbox {
  #items = [];
  #show;
  #sending = false;
  #wake = null;

  /** show(item): item is {id, text, state: 'pending' | 'waiting' | 'sent' | 'refused', error} */
  constructor(show) {
    this.#show = show;
    try { this.#items = JSON.parse(localStorage.getItem(KEY)) ?? []; } catch { /* nothing kept */ }
    for (const item of this.#items) show({ ...item, state: 'pending' });
    if (this.#items.length) this.#run();
  }

  add(text) {
    const item = { id: newID(), text };
    if (new Blob([text]).size > MAX_BYTES) {
      this.#show({ ...item, state: 'refused', error: 'The message is larger than 1 MB. Send it in smaller parts.' });
      return;
    }
    this.#items.push(item);
    this.#keep();
    this.#show({ ...item, state: 'pending' });
    this.#run();
  }

  /** hurry tries at once: the connection is back. */
  hurry() { this.#wake?.(); }

  async #run() {
    if (this.#sending) return;
    this.#sending = true;
    for (let wait = 500; this.#items.length;) {
      const item = this.#items[0];
      try {
        await post('/api/messages', item);
        this.#show({ ...item, state: 'sent' });
      } catch (err) {
        if (!(err instanceof Refused)) {
          this.#show({ ...item, state: 'waiting', error: err.message });
          await new Promise((done) => { this.#wake = done; setTimeout(done, wait); });
          wait = Math.min(wait * 2, LONGEST_WAIT);
          continue;
        }
        this.#show({ ...item, state: 'refused', error: err.message });
      }
      wait = 500;
      this.#items.shift();
      this.#keep();
    }
    this.#sending = false;
  }

  #keep() {
    try { localStorage.setItem(KEY, JSON.stringify(this.#items)); } catch { /* full or forbidden: memory must do */ }
  }
}
