// Streamlit sends an edit a moment after its field is left, and a page switch at once. A click on a page's link
// straight from a field would thus reach the server first, and either the edit or the switch would be lost.
// So such a click waits until the edit is in force (the address changes) or nothing has run for a moment.
const LINKS = '[data-testid="stPageLink-NavLink"]';
const LIMIT_MS = 3000;
let left = null;

const running = () =>
  document.querySelector('[data-testid="stApp"]')?.getAttribute("data-test-script-state") !== "notRunning";

function leave(event) {
  if (!event.target.closest?.(LINKS)) return;
  const field = document.activeElement;
  const edited = field?.closest?.('[data-testid="stMain"]') && field.matches("input, textarea");
  left = edited ? { address: location.search, quietMs: field.type === "range" ? 300 : 100 } : null;
}

function hold(event) {
  const link = event.target.closest?.(LINKS);
  const plain = event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey);
  if (!link || !plain || !left) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  const { address, quietMs } = left;
  const since = performance.now();
  let busy = since;
  left = null;
  const timer = setInterval(() => {
    const now = performance.now();
    if (running()) busy = now;
    if (location.search === address && now - busy < quietMs && now - since < LIMIT_MS) return;
    clearInterval(timer);
    [...document.querySelectorAll(LINKS)].find((other) => other.textContent === link.textContent)?.click();
  }, 10);
}

// Where the first visit to a fresh server is a deep link, Streamlit looks for the page among `pages/*.py` before
// app.py has said which pages there are, and tells the visitor that it does not exist. It does: close that.
function closeWrongDialog() {
  for (const dialog of document.querySelectorAll('[data-testid="stDialog"]')) {
    if (dialog.textContent.includes("Page not found")) dialog.querySelector("button[aria-label]")?.click();
  }
}

export default function ({ data }) {
  if (data.found) [0, 100, 300, 1000].forEach((wait) => setTimeout(closeWrongDialog, wait));
  if (window.plannerKeepsEdits) return;
  window.plannerKeepsEdits = true;
  document.addEventListener("pointerdown", leave, true);
  document.addEventListener("click", hold, true);
}
