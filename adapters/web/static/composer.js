// The message box with its list of commands.

import { $, el } from './dom.js';

const DRAFT = 'parley.draft';

export class Composer {
  #input = $('input');
  #menu = $('commands');
  #commands = [];
  #matches = [];
  #at = 0;
  #send;
  #stop;

  constructor({ send, stop }) {
    this.#send = send;
    this.#stop = stop;
    this.#input.addEventListener('input', () => this.#changed());
    this.#input.addEventListener('keydown', (e) => this.#key(e));
    this.#input.addEventListener('blur', () => this.#offer([]));
    $('composer').addEventListener('submit', (e) => { e.preventDefault(); this.#submit(); });
    $('stop').addEventListener('click', () => { stop(); this.focus(); });
    this.set(sessionStorage.getItem(DRAFT) ?? '');
  }

  focus() { this.#input.focus(); }

  /** set replaces what is in the box. */
  set(text) {
    this.#input.value = text;
    this.#changed();
    this.#offer([]);
  }

  setCommands(list) { this.#commands = list; }

  /** close shuts the list of commands; it says whether it was open. */
  close() {
    const open = !this.#menu.hidden;
    this.#offer([]);
    return open;
  }

  #changed() {
    const text = this.#input.value;
    $('send').disabled = text.trim() === '';
    this.#input.style.height = 'auto';
    this.#input.style.height = `${this.#input.scrollHeight}px`;
    try { sessionStorage.setItem(DRAFT, text.length < 100_000 ? text : ''); } catch { /* no draft then */ }
    const typed = /^\/(\S*)$/.exec(text)?.[1].toLowerCase();
    this.#offer(typed === undefined ? [] : this.#commands.filter((c) => c.name.startsWith(typed)));
  }

  #offer(matches) {
    this.#matches = matches;
    this.#at = 0;
    this.#menu.hidden = matches.length === 0;
    this.#input.ariaExpanded = String(matches.length > 0);
    this.#menu.replaceChildren(...matches.map((c, i) => el('li', {
      id: `command-${i}`, role: 'option',
      onmousedown: (e) => { e.preventDefault(); this.#take(i); },
    }, el('b', {}, `/${c.name}`), c.args ? el('i', {}, ` ${c.args}`) : '', el('span', {}, c.description))));
    this.#point(0);
  }

  #point(i) {
    this.#at = i;
    [...this.#menu.children].forEach((item, k) => item.setAttribute('aria-selected', String(k === i)));
    if (this.#matches.length) {
      this.#input.setAttribute('aria-activedescendant', `command-${i}`);
      this.#menu.children[i].scrollIntoView({ block: 'nearest' });
    } else {
      this.#input.removeAttribute('aria-activedescendant');
    }
  }

  #take(i) {
    const c = this.#matches[i];
    this.set(`/${c.name}${c.args ? ' ' : ''}`);
    this.focus();
  }

  #key(e) {
    if (e.isComposing) return;
    const n = this.#matches.length;
    if (n && (e.key === 'ArrowDown' || e.key === 'ArrowUp')) {
      e.preventDefault();
      this.#point((this.#at + (e.key === 'ArrowDown' ? 1 : n - 1)) % n);
    } else if (n && e.key === 'Tab' && !e.shiftKey) {
      e.preventDefault();
      this.#take(this.#at);
    } else if (e.key === 'Enter' && !e.shiftKey) {
      e.preventDefault();
      const chosen = this.#matches[this.#at];
      if (chosen && this.#input.value !== `/${chosen.name}`) this.#take(this.#at);
      else this.#submit();
    }
  }

  #submit() {
    // Blank lines around what was typed are nobody's intention; spaces may be.
    const text = this.#input.value.replace(/^(\s*\n)+/, '').trimEnd();
    if (text.trim() === '') return;
    this.set('');
    this.#send(text);
  }
}
