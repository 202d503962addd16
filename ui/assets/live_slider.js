// A slider that tells the server while it moves ("moved") and where it was let go ("settled"), and a number box.
// At most one "moved" a frame of the server: the next one waits until the last run has ended.

const PAUSE_MS = 40;
const BUSY_LIMIT_MS = 600;
const states = new WeakMap();

const busy = () =>
  document.querySelector('[data-testid="stApp"]')?.getAttribute("data-test-script-state") !== "notRunning";

function nearest(steps, value) {
  let best = 0;
  steps.forEach((step, at) => {
    if (Math.abs(Math.log(step / value)) < Math.abs(Math.log(steps[best] / value))) best = at;
  });
  return best;
}

function say(state, value, settled) {
  clearTimeout(state.timer);
  if (settled) {
    state.last = 0;
    state.send("settled", value);
    return;
  }
  const tell = () => {
    if (busy() && performance.now() - state.last < BUSY_LIMIT_MS) {
      state.timer = setTimeout(tell, PAUSE_MS / 2);
      return;
    }
    state.last = performance.now();
    state.send("moved", value);
  };
  state.timer = setTimeout(tell, PAUSE_MS / 2);
}

export default function ({ parentElement, data, setTriggerValue }) {
  const range = parentElement.querySelector("input[type=range]");
  const box = parentElement.querySelector("input[type=number]");
  let state = states.get(range);
  if (!state) {
    state = { timer: 0, last: 0, held: false, sent: undefined };
    states.set(range, state);
  }
  state.send = (name, value) => setTriggerValue(name, { value, at: performance.now() });
  const { steps, value, label, unit, none } = data;
  const paint = () => {
    const share = steps.length > 1 ? Number(range.value) / (steps.length - 1) : 0;
    range.style.setProperty("--share", `${100 * share}%`);
    range.setAttribute("aria-valuetext", box.value ? `${box.value} ${unit}` : none);
  };
  parentElement.querySelector(".name").textContent = label;
  parentElement.querySelector(".unit").textContent = unit;
  range.setAttribute("aria-label", label);
  box.setAttribute("aria-label", `${label}, as a number [${unit}]`);
  box.placeholder = none;
  range.max = steps.length - 1;
  // While the user holds the slider, what they set is in force, not what an earlier run was told.
  if (!state.held && document.activeElement !== box) {
    range.value = value === null ? data.none_at : nearest(steps, value);
    box.value = value === null ? "" : value;
  }
  paint();
  range.onpointerdown = () => { state.held = true; };
  range.onpointerup = range.onpointercancel = () => { state.held = false; };
  range.oninput = () => {
    box.value = steps[Number(range.value)];
    paint();
    say(state, steps[Number(range.value)], false);
  };
  range.onchange = () => {
    state.held = false;
    say(state, steps[Number(range.value)], true);
  };
  box.onchange = () => {
    const typed = box.value === "" ? null : Number(box.value);
    if (typed !== null && !(typed >= data.lowest && typed <= data.highest)) {
      box.value = value === null ? "" : value;
    } else if (typed !== null) {
      range.value = nearest(steps, typed);
      say(state, typed, true);
    } else {
      say(state, null, true);
    }
    paint();
  };
}
