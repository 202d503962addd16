// 680 px is the width of A4 inside the page's margins, and less than Letter's.
const fit = (width) => document.querySelectorAll(".js-plotly-plot").forEach(
  (plot) => Plotly.relayout(plot, { width: width || plot.parentElement.clientWidth }));
window.addEventListener("beforeprint", () => fit(680));
window.addEventListener("afterprint", () => fit());
window.addEventListener("resize", () => fit());
fit();
