// The list of messages: a node per entry, changed in place.

import { $, copy, el, morph, setText } from './dom.js';

const NEAR = 96; // px from the end within which the view follows new text

export class Transcript {
  #list = $('transcript');
  #scroll = $('scroll');
  #nodes = new Map(); // entry id → node
  #entries = new Map(); // entry id → entry
  #pending = new Map(); // client id → node
  #press;
  #edit;
  #nameOf;

  /** press(entry, button, node), edit(text), nameOf(session id) → title */
  constructor({ press, edit, nameOf }) {
    this.#press = press;
    this.#edit = edit;
    this.#nameOf = nameOf;
    this.#list.addEventListener('click', (e) => {
      const button = e.target.closest('.copy-code');
      if (button) copy(button.closest('figure').querySelector('code').textContent, button);
    });
    this.#scroll.addEventListener('scroll', () => this.#mark(), { passive: true });
    $('latest').addEventListener('click', () => this.toEnd('smooth'));
    new ResizeObserver(() => this.follow()).observe(this.#scroll);
  }

  #follows = true;

  get live() { return [...this.#entries.values()].some((e) => e.live && !e.mine); }

  /** forget drops what is shown before another life of the server tells anew;
   *  nodes stay until the new order is known, so that nothing flickers. */
  forget() { this.#entries.clear(); }

  /** apply takes an update; it returns the bot's entries that were finished by it. */
  apply({ order, entries = [] }) {
    const finished = [];
    for (const entry of entries) {
      const before = this.#entries.get(entry.id);
      this.#entries.set(entry.id, entry);
      if (!entry.mine && !entry.live && before?.live !== false) finished.push(entry);
      this.#draw(entry);
    }
    if (order) this.#arrange(order);
    $('empty').hidden = this.#nodes.size + this.#pending.size > 0;
    this.follow();
    return finished;
  }

  /** pending shows a message of the outbox until its entry arrives. */
  pending({ id, text, state, error }) {
    let node = this.#pending.get(id);
    if (!node) {
      if ([...this.#entries.values()].some((e) => e.client === id)) return;
      node = this.#mine(text);
      this.#pending.set(id, node);
      this.#list.append(node);
      $('empty').hidden = true;
      this.toEnd();
    }
    node.dataset.state = state;
    const status = node.querySelector('.status');
    if (state === 'refused') {
      status.replaceChildren(`Not sent. ${error} `, el('button', {
        type: 'button', className: 'quiet', onclick: () => { this.#pending.delete(id); node.remove(); this.#edit(text); },
      }, 'Edit'));
    } else {
      status.textContent = { pending: 'Sending…', waiting: `Not stored yet, trying again. ${error ?? ''}`, sent: '' }[state];
    }
  }

  /** read is what a screen reader says of an entry: its beginning, and what can be chosen. */
  read({ id, buttons = [] }) {
    const said = wordsOf(this.#nodes.get(id)?.querySelector('.body')).slice(0, 400);
    const choices = buttons.flat().map((b) => b.label).join(', ');
    return `parley: ${said}${choices && ` Choices: ${choices}`}`;
  }

  /** follow keeps the end in view unless the reader has left it. */
  follow() {
    if (this.#follows) this.toEnd();
    this.#mark();
  }

  toEnd(behavior = 'instant') {
    this.#follows = true;
    this.#scroll.scrollTo({ top: this.#scroll.scrollHeight, behavior });
    this.#mark();
  }

  #mark() {
    const gap = this.#scroll.scrollHeight - this.#scroll.scrollTop - this.#scroll.clientHeight;
    this.#follows = gap < NEAR;
    $('latest').hidden = this.#follows;
  }

  #arrange(order) {
    const known = new Set(order);
    for (const [id, node] of this.#nodes) {
      if (known.has(id)) continue;
      node.remove();
      this.#nodes.delete(id);
      this.#entries.delete(id);
    }
    let at = this.#list.firstChild;
    for (const id of order) {
      const node = this.#nodes.get(id);
      if (!node) continue;
      if (node === at) at = at.nextSibling;
      else this.#list.insertBefore(node, at);
    }
    for (const node of this.#pending.values()) this.#list.append(node);
  }

  #draw(entry) {
    let node = this.#nodes.get(entry.id);
    if (!node && entry.client && this.#pending.has(entry.client)) {
      node = this.#pending.get(entry.client);
      this.#pending.delete(entry.client);
      node.dataset.state = 'stored';
      node.querySelector('.status').textContent = '';
    }
    node ??= entry.mine ? this.#mine(entry.text) : this.#bot();
    if (!this.#nodes.has(entry.id)) {
      this.#nodes.set(entry.id, node);
      if (!node.isConnected) this.#list.append(node);
    }
    node.dataset.id = entry.id;
    setText(node.querySelector('time'), clock(entry.at));
    if (!entry.mine) this.#fill(node, entry);
  }

  #mine(text) {
    const command = /^\/[a-z_]+(\s[^\n]*)?$/i.test(text) && text.length < 200;
    const node = el('li', { className: command ? 'entry mine command' : 'entry mine' });
    let shown = text;
    const resume = /^\/resume (\S+)$/.exec(text);
    if (resume) shown = `/resume ${this.#nameOf(resume[1]) ?? resume[1]}`;
    node.append(
      speaker('You'),
      el('div', { className: 'bubble', dir: 'auto' }, shown),
      el('div', { className: 'meta' }, el('span', { className: 'status', role: 'status' }), el('time')),
    );
    return node;
  }

  #bot() {
    const body = el('div', { className: 'body' });
    const steps = el('details', { className: 'steps', hidden: true }, el('summary'), el('ul'));
    const buttons = el('div', { className: 'buttons', role: 'group', ariaLabel: 'Choices', hidden: true });
    const copyAll = el('button', { type: 'button', className: 'quiet copy' }, 'Copy', el('span', { className: 'hidden' }, ' the message'));
    const node = el('li', { className: 'entry bot' }, speaker('parley'), steps, body, buttons,
      el('div', { className: 'meta' }, copyAll, el('time')));
    copyAll.addEventListener('click', () => copy(this.#entries.get(node.dataset.id)?.text ?? body.innerText, copyAll));
    return node;
  }

  #fill(node, entry) {
    const [, steps, body, buttons] = node.children;
    const wasLive = node.classList.contains('live');
    node.classList.toggle('live', Boolean(entry.live));
    node.classList.toggle('waiting', Boolean(entry.live && !entry.html));
    node.classList.toggle('card', Boolean(entry.buttons?.length));
    body.ariaBusy = String(Boolean(entry.live));
    morph(body, entry.html ?? '');
    if (entry.live) growing(body)?.classList.add('caret');
    this.#steps(steps, entry, wasLive);
    this.#buttons(buttons, entry);
  }

  /** Steps are open while the answer is written and folded at its end. */
  #steps(steps, entry, wasLive) {
    const lines = entry.progress ?? [];
    steps.hidden = lines.length === 0;
    if (steps.hidden) return;
    const [summary, list] = steps.children;
    setText(summary, entry.live ? 'Working' : `${lines.length} ${lines.length === 1 ? 'step' : 'steps'}`);
    lines.forEach((line, i) => {
      setText(list.children[i] ?? list.appendChild(el('li', { dir: 'auto' })), line);
    });
    while (list.children.length > lines.length) list.lastChild.remove();
    if (wasLive !== Boolean(entry.live)) steps.open = Boolean(entry.live);
  }

  #buttons(group, entry) {
    const rows = entry.buttons ?? [];
    group.hidden = rows.length === 0;
    const shape = JSON.stringify(rows);
    if (group.dataset.shape === shape) return;
    group.dataset.shape = shape;
    group.replaceChildren(...rows.map((row) => el('div', { className: 'row' }, ...row.map((b) => el('button', {
      type: 'button', className: b.style ?? '', dir: 'auto', onclick: () => this.#press(entry.id, b.data, group),
    }, b.label)))));
  }
}

/** speaker says to those who do not see the sides of the page whose words follow. */
function speaker(name) { return el('span', { className: 'hidden' }, `${name}: `); }

/** wordsOf is the text of a body without the captions of its code. */
function wordsOf(body) {
  const all = body?.cloneNode(true);
  for (const caption of all?.querySelectorAll('figcaption') ?? []) caption.remove();
  return all?.textContent.trim() ?? '';
}

/** growing is the innermost block at the end of a body, where text is added. */
function growing(body) {
  let at = body;
  while (at.lastElementChild?.matches('p, h1, h2, h3, h4, h5, h6, ul, ol, li, blockquote')) at = at.lastElementChild;
  return at.matches('p, h1, h2, h3, h4, h5, h6, li') ? at : null;
}

function clock(at) {
  const d = new Date(at);
  const today = d.toDateString() === new Date().toDateString();
  return d.toLocaleString([], today ? { timeStyle: 'short' } : { dateStyle: 'medium', timeStyle: 'short' });
}
