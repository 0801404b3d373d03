// Copy the panel to the clipboard as plain text.

function panelAsText() {
  panel.classList.add('copying'); 
  const text = panel.innerText.trim();
  panel.classList.remove('copying');
  return text;
}

/** Copy without the clipboard API, for old browsers and pages without permission. */
function copyBySelecting(text) {
  const area = html('textarea', { 'aria-hidden': 'true' });
  area.value = text;
  document.body.append(area);
  area.select();
  const isCopied = document.execCommand('copy');
  area.remove();
  return isCopied;
}

async function writeClipboard(text) {
  try {
    await window.navigator.clipboard.writeText(text);
    return true;
  } catch {
    return copyBySelecting(text);
  }
}

async function copyPanel() {
  const button = panel.querySelector('.copy');
  if (panel.hidden || !button) return;
  const isCopied = await writeClipboard(panelAsText());
  button.textContent = isCopied ? 'Copied' : 'Not allowed';
  setTimeout(() => { button.textContent = 'Copy'; }, 1500);
}
