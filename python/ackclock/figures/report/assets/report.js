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

  // A dark page has the same figures: ink and paper change places, the colours of the curves stay.
  const DARK = {
    white: "#17191c", "#222222": "#e4e4e4", "#6b6b6b": "#a3a3a3", "#e3e3e3": "#3a3d42", "#f4f4f4": "#212429",
    "#FBE3D2": "#4a3023",
  };
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const themed = (figure) =>
    dark.matches ? JSON.parse(JSON.stringify(figure), (_, value) => DARK[value] ?? value) : figure;

  // Zooming a figure over time zooms all of the same run.
  const isOverTime = (layout) => layout.xaxis?.title?.text === "Time (s)";
  const run = (id) => id.split("-", 1)[0];
  let linking = false;
  const link = (id, change) => {
    if (linking || !Object.keys(change).some((key) => key.startsWith("xaxis"))) return;
    const range = document.getElementById(id).layout.xaxis.range.slice();
    const others = Object.keys(figures).filter((other) => {
      const place = document.getElementById(other);
      return other !== id && run(other) === run(id) && place.dataset.drawn && isOverTime(place.layout);
    });
    linking = true;
    Promise.all(others.map((other) => Plotly.relayout(other, { "xaxis.range": range }))).finally(() => {
      linking = false;
    });
  };

  const draw = (id, given) => {
    const figure = themed(given);
    const place = document.getElementById(id);
    const fitting = place.clientWidth < 560 ? merged(figure.layout, figure.narrow) : figure.layout;
    const layout = { height: 400, ...fitting, autosize: true };
    config.toImageButtonOptions.filename = id;
    return Plotly.newPlot(place, figure.data, layout, { ...config }).then(() => {
      place.dataset.drawn = "yes";
      if (isOverTime(layout)) place.on("plotly_relayout", (change) => link(id, change));
    });
  };

  const resize = () => {
    for (const id of Object.keys(figures)) Plotly.Plots.resize(document.getElementById(id));
  };

  Promise.all(Object.entries(figures).map(([id, figure]) => draw(id, figure))).then(() => {
    document.documentElement.dataset.ready = "yes";
  });
  dark.addEventListener("change", () => Object.entries(figures).forEach(([id, figure]) => draw(id, figure)));
  window.addEventListener("beforeprint", resize);
  window.addEventListener("afterprint", resize);
})();
