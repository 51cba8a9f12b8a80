// The list of sessions, and on a narrow screen the drawer that holds it.

import { $, el } from './dom.js';

export class Sessions {
  #list = [];
  #timer = 0;
  #open;

  /** open(id) resumes a session, create() begins one. */
  constructor({ open, create }) {
    this.#open = open;
    $('new-session').addEventListener('click', () => { this.drawer(false); create(); });
    $('open-sidebar').addEventListener('click', () => this.drawer(true));
    $('close-sidebar').addEventListener('click', () => this.drawer(false));
    $('scrim').addEventListener('click', () => this.drawer(false));
  }

  titleOf(id) { return this.#list.find((s) => s.id === id)?.title; }

  /** refresh reads the list soon; calls that come together are one. */
  refresh() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#load(), 250);
  }

  /** drawer opens or closes the list on a narrow screen; it says whether it was open. */
  drawer(open) {
    const was = document.body.classList.contains('drawer');
    document.body.classList.toggle('drawer', open);
    $('scrim').hidden = !open;
    $('chat').inert = open;
    $('open-sidebar').ariaExpanded = String(open);
    if (open) $('new-session').focus();
    else if (was) $('open-sidebar').focus();
    return was;
  }

  async #load() {
    try {
      const res = await fetch('/api/sessions');
      if (res.ok) this.#show(await res.json());
    } catch { /* the next change asks again */ }
  }

  #show(list) {
    this.#list = list;
    $('no-sessions').hidden = list.length > 0;
    const current = list.find((s) => s.current);
    $('title').textContent = current?.title || 'New session';
    document.title = current?.title ? `${current.title} · parley` : 'parley';
    $('sessions').replaceChildren(...list.map((s) => el('li', {}, el('button', {
      type: 'button', 'aria-current': String(s.current),
      onclick: () => { this.drawer(false); if (!s.current) this.#open(s.id); },
    }, el('b', { dir: 'auto' }, s.title || 'New session'), el('small', {}, `${ago(s.at)} · ${s.messages} ${s.messages === 1 ? 'message' : 'messages'}`)))));
  }
}

const units = [['year', 31_536_000], ['month', 2_592_000], ['week', 604_800], ['day', 86_400], ['hour', 3600], ['minute', 60]];
const relative = new Intl.RelativeTimeFormat(undefined, { numeric: 'auto' });

function ago(at) {
  const seconds = (Date.now() - new Date(at)) / 1000;
  for (const [unit, size] of units) if (seconds >= size) return relative.format(-Math.floor(seconds / size), unit);
  return 'just now';
}
