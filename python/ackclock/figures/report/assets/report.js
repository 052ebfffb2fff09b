// Draws the figures that the page carries as JSON.
"use strict";
(() => {
  const figures = JSON.parse(document.getElementById("figures").textContent);
  const config = {
    responsive: true,
    displaylogo: false,
    showTips: false,
    modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d", "zoomIn2d", "zoomOut2d"],
    toImageButtonOptions: { format: "svg" },
  };

  const isObject = (value) => value !== null && typeof value === "object" && !Array.isArray(value);
  const merged = (layout, changes) => {
    const result = { ...layout };
    for (const [key, value] of Object.entries(changes)) {
      result[key] = isObject(value) ? { ...layout[key], ...value } : value;
    }
    return result;
  };

  const draw = (id, figure) => {
    const place = document.getElementById(id);
    const fitting = place.clientWidth < 560 ? merged(figure.layout, figure.narrow) : figure.layout;
    const layout = { height: 400, ...fitting, autosize: true };
    config.toImageButtonOptions.filename = id;
    return Plotly.newPlot(place, figure.data, layout, { ...config }).then(() => {
      place.dataset.drawn = "yes";
    });
  };

  const resize = () => {
    for (const id of Object.keys(figures)) Plotly.Plots.resize(document.getElementById(id));
  };

  Promise.all(Object.entries(figures).map(([id, figure]) => draw(id, figure))).then(() => {
    document.documentElement.dataset.ready = "yes";
  });
  window.addEventListener("beforeprint", resize);
  window.addEventListener("afterprint", resize);
})();
