// The connection to the server: one stream of events that heals itself, and posts.

const QUIET = 45_000; // three pings of the server
const FIRST_WAIT = 500;
const LONGEST_WAIT = 10_000;

/** Stream keeps one event stream open for ever and remembers where it was. */
export class Stream {
  #handlers;
  #source = null;
  #last = '';
  #wait = FIRST_WAIT;
  #watchdog = 0;
  #retry = 0;

  /** handlers: hello(data), update(data), state('connecting' | 'online' | 'offline') */
  constructor(handlers) {
    this.#handlers = handlers;
    window.addEventListener('online', () => this.#again(0));
    document.addEventListener('visibilitychange', () => {
      if (!document.hidden && !this.#source) this.#again(0);
    });
  }

  open() {
    this.close();
    const source = new EventSource(`/api/events${this.#last ? `?after=${encodeURIComponent(this.#last)}` : ''}`);
    this.#source = source;
    this.#alive();
    source.addEventListener('hello', (e) => {
      this.#wait = FIRST_WAIT;
      this.#alive();
      this.#handlers.hello(JSON.parse(e.data));
      this.#handlers.state('online');
    });
    source.addEventListener('update', (e) => {
      this.#alive();
      this.#last = e.lastEventId;
      this.#handlers.update(JSON.parse(e.data));
    });
    source.addEventListener('ping', () => this.#alive());
    source.addEventListener('error', () => this.#lost());
  }

  close() {
    clearTimeout(this.#watchdog);
    clearTimeout(this.#retry);
    this.#source?.close();
    this.#source = null;
  }

  #alive() {
    clearTimeout(this.#watchdog);
    this.#watchdog = setTimeout(() => this.#lost(), QUIET);
  }

  async #lost() {
    this.close();
    this.#handlers.state('offline');
    this.#again(this.#wait * (0.75 + Math.random() / 2));
    this.#wait = Math.min(this.#wait * 2, LONGEST_WAIT);
    // An event stream does not tell why it failed; a plain request does.
    try {
      const res = await fetch('/api/sessions');
      if (res.status === 401) location.reload();
    } catch { /* still away */ }
  }

  #again(ms) {
    clearTimeout(this.#retry);
    this.#retry = setTimeout(() => this.open(), ms);
  }
}

/** Refused is an answer that trying again cannot change. */
export class Refused extends Error {}

/** post sends JSON; it throws Refused for good refusals, anything else may pass. */
export async function post(path, body) {
  let res;
  try {
    res = await fetch(path, {
      method: 'POST',
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify(body),
    });
  } catch {
    throw new Error('parley does not answer.');
  }
  if (res.status === 401) location.reload();
  if (res.ok) return;
  let text = `The server answered ${res.status}.`;
  try { text = (await res.json()).error ?? text; } catch { /* no JSON */ }
  throw res.status < 500 && res.status !== 429 ? new Refused(text) : new Error(text);
}

/** newID names a message or a press; the server counts each id once. */
export function newID() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (b) => b.toString(16).padStart(2, '0')).join('');
}
