// Streamlit sends an edit a moment after its field is left, and a page switch at once. A click on a page's link
// straight from a field would thus reach the server first, and either the edit or the switch would be lost.
// So a click that leaves an unsent edit waits until it is in force: the address has changed, or a run has ended.
const LINKS = '[data-testid="stPageLink-NavLink"]';
const DIALOG_LIMIT_MS = 10000;
const LIMIT_MS = 4000;
const SLIDER_MS = 300; // Streamlit sends a slider's value once it has rested for 200 ms
let field = null;
let sent = null;
let moved = -Infinity;
let left = null;

const running = () =>
  document.querySelector('[data-testid="stApp"]')?.getAttribute("data-test-script-state") !== "notRunning";

function enter(event) {
  if (!event.target.matches?.('[data-testid="stMain"] :is(input, textarea)')) return;
  field = event.target;
  sent = field.value;
}

function send(event) {
  const sends = event.key === "Enter" && (event.target.tagName === "INPUT" || event.ctrlKey || event.metaKey);
  if (sends && event.target === field) sent = field.value;
}

function move(event) {
  if (event.target.type === "range") moved = performance.now();
}

function leave(event) {
  if (!event.target.closest?.(LINKS)) return;
  const slid = performance.now() - moved < SLIDER_MS;
  const typed = document.activeElement === field && field?.type !== "range" && field?.value !== sent;
  left = slid || typed ? location.search : null;
}

function hold(event) {
  const link = event.target.closest?.(LINKS);
  const plain = event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey);
  if (!link || !plain || left === null) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  const address = left;
  const since = performance.now();
  let ran = false;
  left = null;
  const timer = setInterval(() => {
    ran ||= running();
    const inForce = location.search !== address || (ran && !running());
    if (!inForce && performance.now() - since < LIMIT_MS) return;
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

function watchForWrongDialog() {
  closeWrongDialog();
  const observer = new MutationObserver(closeWrongDialog);
  observer.observe(document.body, { childList: true, subtree: true });
  setTimeout(() => observer.disconnect(), DIALOG_LIMIT_MS);
}

export default function ({ data }) {
  if (data.found) watchForWrongDialog();
  if (window.plannerFrame) return;
  window.plannerFrame = true;
  document.addEventListener("focusin", enter, true);
  document.addEventListener("keydown", send, true);
  document.addEventListener("input", move, true);
  document.addEventListener("pointerdown", leave, true);
  document.addEventListener("click", hold, true);
}
