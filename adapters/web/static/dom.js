// The few DOM helpers that everything else uses. The page has one place where a
// string becomes markup: fragment(), for HTML that the server rendered.

const policy = window.trustedTypes
  ? trustedTypes.createPolicy('parley', { createHTML: (s) => s })
  : { createHTML: (s) => s };

export const $ = (id) => document.getElementById(id);

/** el makes an element; children are nodes or text, never markup. */
export function el(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (name.startsWith('on')) node.addEventListener(name.slice(2), value);
    else if (name in node) node[name] = value;
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

/** setText changes a node's text only if it differs. */
export function setText(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

function fragment(html) {
  const t = document.createElement('template');
  t.innerHTML = policy.createHTML(html);
  return t.content;
}

/** morph makes a node's content equal to HTML of the server and leaves what is
 *  equal already in place: text that grows neither flickers nor loses a selection. */
export function morph(node, html) {
  reconcile(node, fragment(html));
}

function reconcile(to, from) {
  let have = to.firstChild;
  for (let want = from.firstChild; want;) {
    const nextWant = want.nextSibling;
    if (!have) {
      to.append(want);
    } else {
      const nextHave = have.nextSibling;
      if (!have.isEqualNode(want)) update(have, want);
      have = nextHave;
    }
    want = nextWant;
  }
  while (have) {
    const next = have.nextSibling;
    have.remove();
    have = next;
  }
}

function update(have, want) {
  if (have.nodeType === Node.TEXT_NODE && want.nodeType === Node.TEXT_NODE) {
    if (want.data.startsWith(have.data)) have.appendData(want.data.slice(have.data.length));
    else have.data = want.data;
  } else if (have.nodeType === Node.ELEMENT_NODE && have.nodeName === want.nodeName) {
    for (const { name } of [...have.attributes]) if (!want.hasAttribute(name)) have.removeAttribute(name);
    for (const { name, value } of want.attributes) if (have.getAttribute(name) !== value) have.setAttribute(name, value);
    reconcile(have, want);
  } else {
    have.replaceWith(want);
  }
}

/** copy puts text on the clipboard and says so on the button, whose first text is "Copy". */
export async function copy(text, button) {
  const label = button.firstChild;
  try {
    await navigator.clipboard.writeText(text);
    label.data = 'Copied';
  } catch {
    label.data = 'Not allowed';
  }
  setTimeout(() => { label.data = 'Copy'; }, 1500);
}

export function toast(text, kind = '') {
  const node = el('p', { className: `toast ${kind}`, dir: 'auto' }, text);
  $('toasts').append(node);
  setTimeout(() => node.remove(), 6000);
}
