"""Round-trip times of a flow."""

from __future__ import annotations

import numpy as np

from ackclock.errors import InputError
from ackclock.figures import figure_spec, numbers
from ackclock.figures.capture_figures.part import Between, Part, array
from ackclock.figures.figure_spec import Drawing, Line, Panel
from ackclock.metrics.view import RunView


def rtt(view: RunView, flow: int | None = None, between: Between = None) -> Drawing:
    """Return the smoothed RTT of a flow over time, with its minimum."""
    part = Part.of(view, between)
    number = part.flow(flow)
    samples = part.rows("flow_samples", number).drop_nulls("srtt_s")
    if not samples.height:
        raise InputError("the result holds no flow samples with an RTT to draw")
    srtt_s = array(samples["srtt_s"])
    unit_s, unit = numbers.scale(figure_spec.span([srtt_s]), "s")
    rows = view.flows
    base_s = rows.filter(rows["flow"] == number)["base_rtt_s"].item()
    references = ((base_s / unit_s, f"shortest\n{numbers.value(base_s, 's')}"),) if base_s else ()
    lines = [Line("smoothed RTT", array(samples["time_s"]), srtt_s / unit_s, figure_spec.RED)]
    heading = f"Round-trip time of {part.name(number)}"
    caption = f"The smoothed RTT; half of the samples are below {numbers.value(float(np.median(srtt_s)), 's')}."
    return Drawing("rtt", heading, caption, (Panel(f"RTT ({unit})", lines, references),), part.start_s, part.end_s)
