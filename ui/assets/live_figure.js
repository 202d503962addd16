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

const isNarrow = (host, data) => host.clientWidth > 0 && host.clientWidth < data.narrow_below;

// A width that crosses the limit redraws: other places for the charts, and no tool buttons over the title.
function resized(host, state, library) {
  if (!host.offsetParent) return;
  if (isNarrow(host, state.data) !== state.narrow) {
    state.wanted = state.data;
    draw(host, state);
  } else {
    library.Plots.resize(host);
  }
}

async function draw(host, state) {
  if (state.busy) return;
  state.busy = true;
  try {
    while (state.wanted) {
      const { figure, chunk } = (state.data = state.wanted);
      state.wanted = null;
      const library = await plotly(chunk);
      const parsed = JSON.parse(figure);
      const narrow = (state.narrow = isNarrow(host, state.data));
      const changes = narrow && state.data.narrow ? JSON.parse(state.data.narrow) : {};
      const height = changes.height || state.data.height;
      const layout = { ...parsed.layout, ...changes, autosize: true, height };
      host.style.minHeight = height + "px";
      delete layout.width;
      const config = { displaylogo: false, showSendToCloud: false, responsive: true,
        displayModeBar: narrow ? false : "hover",
        modeBarButtonsToRemove: ["toImage", "select2d", "lasso2d", "autoScale2d", "resetCameraLastSave3d"] };
      await library.react(host, parsed.data, layout, config);
      if (!state.listening) {
        state.listening = true;
        listen(host, state);
        new ResizeObserver(() => resized(host, state, library)).observe(host);
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
      format, filename: data.filename, height: parseFloat(host.style.minHeight),
      width: isNarrow(host, data) ? data.narrow_below : data.width, scale: format === "png" ? 2 : 1 });
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
  host.setAttribute("aria-label", data.alt);
  state.trigger = setTriggerValue;
  state.wanted = data;
  buttons(parentElement, host, data);
  draw(host, state);
}
