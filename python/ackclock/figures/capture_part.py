"""Selection of the flow and the part of the time that a figure shows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from ackclock.errors import InputError
from ackclock.figures import figure_spec, numbers, overlay
from ackclock.figures.figure_spec import Drawing, Panel
from ackclock.metrics.view import Array, RunView

#: From, until: in seconds.
Between = tuple[float, float] | None


@dataclass(frozen=True, slots=True)
class Part:
    """A run from `start_s` to `end_s`."""

    view: RunView
    start_s: float
    end_s: float

    @staticmethod
    def of(view: RunView, between: Between) -> Part:
        """Return the whole run, or a part of it. Raises `InputError` if the run is over before."""
        start_s, end_s = between or (0.0, view.duration_s)
        if between is not None and start_s >= view.duration_s:
            found, last = numbers.value(start_s, "s"), numbers.value(view.duration_s, "s")
            raise InputError(f"between: found {found} and later; expected times before {last}, when the result ends")
        return Part(view, start_s, end_s)

    def rows(self, table: str, flow: int | None = None) -> pl.DataFrame:
        """Return the rows of a table, of one flow or of all, in the order of time."""
        rows = self.view.data.scan(table).filter(pl.col("run") == self.view.run)
        rows = rows.filter(pl.col("time_s").is_between(self.start_s, self.end_s))
        return (rows if flow is None else rows.filter(pl.col("flow") == flow)).sort("time_s").collect()

    def flow(self, expected: int | None) -> int:
        """Return the flow requested, else that with the most data. Raises `InputError` if it does not exist.

        A direction of requests may be wanted, too.
        """
        flows = self.view.flows.select("flow", pl.col("delivered_bytes").fill_null(0))
        if not flows.height:
            raise InputError("the result holds no flows with data to draw")
        if expected is None:
            return int(flows.sort("delivered_bytes", -pl.col("flow").cast(pl.Int64))["flow"][-1])
        if expected not in flows["flow"] and expected not in self.view.requests:
            some = ", ".join(map(str, flows["flow"].sort().head(10))) + (", …" if flows.height > 10 else "")
            raise InputError(f"flow: found {expected}; expected one of {some}")
        return expected

    def name(self, flow: int) -> str:
        """Return a flow's ends, or its number."""
        rows = self.view.data.scan("flows").filter((pl.col("run") == self.view.run) & (pl.col("flow") == flow))
        ends = rows.select("source", "destination").collect().row(0)
        return f"flow {flow}" + (f", {ends[0]} → {ends[1]}" if all(ends) else "")

    def segment_bytes(self, flow: int) -> float:
        """Return the flow's MSS as far as it is known; else 1448."""
        captured = self.view.data.scan("captured")
        rows = captured.filter((pl.col("run") == self.view.run) & (pl.col("flow") == flow)).select("mss").collect()
        return float(rows["mss"][0] or 1448) if rows.height else 1448.0

    def drawing(self, key: str, heading: str, title: str, caption: str, panel: Panel) -> Drawing:
        """Return a figure of one panel over this part."""
        x, subtitle = figure_spec.over_time(self.start_s, self.end_s), overlay.origin(self.view.data)
        caption = f"{title}. {caption} Drag to zoom, double-click to see all."
        return Drawing(key, heading, caption, [panel], x, row_in=2.4, title=title, subtitle=subtitle, precise=True)


def array(column: pl.Series) -> Array:
    """Return numbers, NaN for null."""
    return np.asarray(column.cast(pl.Float64).to_numpy())
