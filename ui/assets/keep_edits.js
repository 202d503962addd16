// A click on a page's link while an edit is still on its way to the server would drop the edit: Streamlit merges
// the two requests and keeps the widgets of the next page only. So wait until the edit's run has started.
const LINKS = '[data-testid="stPageLink-NavLink"]';
const LIMIT_MS = 5000;

const sending = () =>
  document.querySelector('[data-testid="stApp"]')?.getAttribute("data-test-script-state") === "rerunRequested";

function hold(event) {
  const link = event.target.closest?.(LINKS);
  const plain = event.button === 0 && !(event.metaKey || event.ctrlKey || event.shiftKey || event.altKey);
  if (!link || !plain || link.dataset.released || !sending()) return;
  event.preventDefault();
  event.stopImmediatePropagation();
  const since = performance.now();
  const timer = setInterval(() => {
    if (sending() && performance.now() - since < LIMIT_MS) return;
    clearInterval(timer);
    const now = [...document.querySelectorAll(LINKS)].find((other) => other.textContent === link.textContent);
    if (!now) return;
    now.dataset.released = "yes";
    now.click();
    delete now.dataset.released;
  }, 20);
}

export default function () {
  if (window.plannerKeepsEdits) return;
  window.plannerKeepsEdits = true;
  document.addEventListener("click", hold, true);
}
