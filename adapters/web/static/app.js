// parley's chat page. The server tells everything over one event stream; this file
// wires the stream, the transcript, the message box and the list of sessions.

import { Composer } from './composer.js';
import { $, toast } from './dom.js';
import { Outbox } from './outbox.js';
import { Sessions } from './sessions.js';
import { newID, post, Refused, Stream } from './stream.js';
import { Transcript } from './transcript.js';

const build = document.documentElement.dataset.build;
let typingUntil = 0;
let typingTimer = 0;
let tried = 0;

const sessions = new Sessions({
  open: (id) => say(`/resume ${id}`),
  create: () => say('/new'),
});
const transcript = new Transcript({
  press,
  edit: (text) => { composer.set(text); composer.focus(); },
  nameOf: (id) => sessions.titleOf(id),
});
const composer = new Composer({ send: say, stop });
const outbox = new Outbox((item) => transcript.pending(item));

const stream = new Stream({
  state(state) {
    $('link').dataset.state = state;
    $('link').textContent = { online: 'Connected', offline: 'Reconnecting…' }[state];
    if (state === 'online') outbox.hurry();
  },
  hello(data) {
    if (data.build !== build && tried++ === 0) { location.reload(); return; }
    if (data.fresh) transcript.forget();
    sessions.refresh();
  },
  update(data) {
    if (data.commands) composer.setCommands(data.commands);
    typingUntil = Date.now() + data.typing;
    const finished = transcript.apply(data);
    for (const n of data.notices ?? []) if (n.text) toast(n.text);
    if (data.order || finished.length) sessions.refresh();
    if (finished.length === 1) $('announcer').textContent = transcript.read(finished[0]);
    busy();
  },
});

function say(text) {
  outbox.add(text);
  composer.focus();
}

async function stop() {
  try {
    await post('/api/stop', { id: newID() });
  } catch (err) {
    toast(`Not stopped. ${err.message}`, 'bad');
  }
}

/** press sends a choice; the group rests until the server has it. */
async function press(message, data, group) {
  const id = newID();
  group.inert = true;
  group.classList.add('pressed');
  for (let attempt = 0; ; attempt++) {
    try {
      await post('/api/buttons', { id, message, data });
      break;
    } catch (err) {
      if (err instanceof Refused || attempt === 4) { toast(err.message, 'bad'); break; }
      await new Promise((done) => { setTimeout(done, 400 * 2 ** attempt); });
    }
  }
  group.inert = false;
  group.classList.remove('pressed');
  composer.focus();
}

/** busy shows whether the bot is at work: dots until it writes, Stop until it ends. */
function busy() {
  clearTimeout(typingTimer);
  const left = typingUntil - Date.now();
  if (left > 0) typingTimer = setTimeout(busy, left + 20);
  $('typing').hidden = left <= 0 || transcript.live;
  $('stop').hidden = left <= 0 && !transcript.live;
  transcript.follow();
}

document.addEventListener('keydown', (e) => {
  if (e.isComposing) return;
  if (e.target === $('input') && (e.key === 'PageUp' || e.key === 'PageDown')) {
    e.preventDefault(); // reading needs no way out of the message box
    $('scroll').scrollBy({ top: (e.key === 'PageUp' ? -0.9 : 0.9) * $('scroll').clientHeight });
  }
  if (e.key !== 'Escape') return;
  if (composer.close()) composer.focus();
  else if (!sessions.drawer(false) && !$('stop').hidden) stop();
});

stream.open();
