// Draws a figure with the Plotly that Streamlit brings, and redraws it in place: zoom, camera and focus stay.

const drawn = new WeakMap();

async function plotly(chunk) {
  if (window.Plotly) return window.Plotly;
  const entry = document.querySelector('script[type="module"][src*="static/js/"]');
  const base = entry ? new URL("./", entry.src) : new URL("static/js/", document.baseURI);
  await import(new URL(chunk, base).href);
  if (!window.Plotly) throw new Error("Plotly is not there");
  return window.Plotly;
}

function listen(host, state) {
  host.on("plotly_click", (event) => {
    const row = event.points.map((point) => point.customdata).find((value) => value !== undefined && value !== null);
    if (row !== undefined) state.trigger("picked", Array.isArray(row) ? row[0] : row);
  });
}

async function draw(host, state) {
  if (state.busy) return;
  state.busy = true;
  try {
    while (state.wanted) {
      const { figure, chunk, height } = state.wanted;
      state.wanted = null;
      const library = await plotly(chunk);
      const parsed = JSON.parse(figure);
      const layout = { ...parsed.layout, autosize: true, height };
      delete layout.width;
      const config = { displaylogo: false, showSendToCloud: false, responsive: true,
        modeBarButtonsToRemove: ["toImage", "select2d", "lasso2d", "autoScale2d", "resetCameraLastSave3d"] };
      await library.react(host, parsed.data, layout, config);
      if (!state.listening) {
        state.listening = true;
        listen(host, state);
        new ResizeObserver(() => host.offsetParent && library.Plots.resize(host)).observe(host);
      }
    }
  } catch (error) {
    host.textContent = "The figure can't be drawn in this browser. The table has its numbers.";
    console.warn(error);
  } finally {
    state.busy = false;
  }
}

function buttons(root, host, data) {
  root.querySelectorAll(".planner-figure-buttons button").forEach((button) => {
    const format = button.dataset.format;
    button.setAttribute("aria-label", "Download figure as " + format.toUpperCase() + ": " + data.label);
    button.onclick = () => window.Plotly && window.Plotly.downloadImage(host, {
      format, filename: data.filename, width: data.width, height: data.height, scale: format === "png" ? 2 : 1 });
  });
  root.querySelector(".planner-figure-buttons").hidden = !data.buttons;
}

export default function ({ parentElement, data, setTriggerValue }) {
  const host = parentElement.querySelector(".planner-figure-host");
  let state = drawn.get(host);
  if (!state) {
    state = {};
    drawn.set(host, state);
  }
  host.style.minHeight = data.height + "px";
  host.setAttribute("aria-label", data.alt);
  state.trigger = setTriggerValue;
  state.wanted = data;
  buttons(parentElement, host, data);
  draw(host, state);
}
