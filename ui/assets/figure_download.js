export default function ({ parentElement, data }) {
  parentElement.querySelectorAll("button").forEach((button) => {
    button.setAttribute("aria-label", "Download figure as " + button.dataset.format.toUpperCase() + ": " + data.label);
    button.onclick = () => {
      const plot = document.querySelector(".st-key-" + CSS.escape(data.key) + " .js-plotly-plot");
      const camera = plot && plot.querySelector('.modebar-btn[data-title^="Download plot"]');
      if (!camera) return;
      plot._context.toImageButtonOptions.format = button.dataset.format;
      camera.click();
    };
  });
}
