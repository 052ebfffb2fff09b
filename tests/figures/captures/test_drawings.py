"""Specs of capture figures, compared with the captured run and with tables made by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from ackclock import capture, metrics
from ackclock.capture import tables as capture_tables
from ackclock.dataset import Dataset, Spool
from ackclock.errors import InputError
from ackclock.figures import capture_figures
from ackclock.figures.figure_spec import Line, Points, Stack, Strokes


def view(data: Dataset) -> metrics.RunView:
    return next(iter(metrics.runs(data)))


def named(drawing) -> dict:
    return {getattr(layer, "name", "stack"): layer for panel in drawing.panels for layer in panel.layers}


def test_each_copy_is_a_stroke_and_each_loss_a_sign(result):
    drawing = capture_figures.sequence(view(result.data), flow=2)
    layers = named(drawing)
    segments = result.data.scan("segments").filter(pl.col("flow") == 2).collect()
    lost = segments.filter(pl.col("fate").cast(pl.String).is_in(["lost", "lost_upstream"]))
    assert lost.height > 0
    assert layers[f"lost ({lost.height:,})"].x.size == lost.height
    assert sum(layer.x.size for layer in layers.values() if isinstance(layer, Points)) > lost.height  # and repairs
    strokes = [layer for panel in drawing.panels for layer in panel.layers if isinstance(layer, Strokes)]
    assert sum(layer.x.size for layer in strokes if layer.name != "SACK") == segments.height
    assert "flow 2" in drawing.title
    assert drawing.panels[0].y.title == "Sequence (MB)"


def test_the_line_of_acknowledgements_never_falls_and_stays_below_what_is_sent(result):
    layers = named(capture_figures.sequence(view(result.data), flow=0))
    acked = layers["acknowledged"]
    assert (np.diff(acked.y) >= 0).all()
    segments = result.data.scan("segments").filter(pl.col("flow") == 0).collect()
    sent = segments.select((pl.col("offset_bytes") + pl.col("payload_bytes")).max()).item()
    assert 0.9 * sent < 1e6 * acked.y[-1] <= sent
    assert layers["SACK"].y.min() >= acked.y[0]
    assert (layers["SACK"].y_end > layers["SACK"].y).all()


def test_acknowledgements_are_only_kept_with_segments(run):
    without = capture.read([run[1]])
    assert not without.data.scan("acknowledgements").collect().height
    with pytest.raises(InputError, match="--segments"):
        capture_figures.sequence(view(without.data))


def test_a_run_with_captures_draws_its_own_segments(run, result):
    theirs, ours = (
        named(capture_figures.sequence(view(run[0]), flow=0)),
        named(capture_figures.sequence(view(result.data), flow=0)),
    )
    (lost,) = [layer for name, layer in theirs.items() if name.startswith("lost")]
    (seen_lost,) = [layer for name, layer in ours.items() if name.startswith("lost")]
    np.testing.assert_allclose(np.sort(lost.x), np.sort(seen_lost.x), atol=1e-5)
    assert np.isclose(theirs["acknowledged"].y[-1] * 1448e-6, ours["acknowledged"].y[-1], rtol=0.03)


def test_a_part_of_the_time_has_what_is_in_it(result):
    part = capture_figures.sequence(view(result.data), flow=0, between=(1.0, 2.0))
    assert (part.x.low, part.x.high) == (1.0, 2.0)
    for layer in named(part).values():
        assert layer.x.min() >= 1.0
        assert layer.x.max() <= 2.0


def test_the_flow_with_the_maximum_data_is_drawn_and_another_is_requested_for_by_number(result):
    maximum = result.data.flows.sort("delivered_bytes")["flow"][-1]
    assert f"flow {maximum}," in capture_figures.rtt(view(result.data)).title
    with pytest.raises(InputError, match="flow: found 7; expected one of 0, 2"):
        capture_figures.rtt(view(result.data), flow=7)


def test_throughput_by_limits_is_all_that_was_delivered(result):
    (stack,) = named(capture_figures.limits(view(result.data), flow=0)).values()
    assert isinstance(stack, Stack)
    samples = result.data.flow_samples.filter(pl.col("flow") == 0).sort("time_s")["delivered_bytes"]
    drawn_bits = 1e6 * (stack.heights.sum(axis=0) * np.diff(stack.edges)).sum()
    assert drawn_bits == pytest.approx(8 * (samples[-1] - samples[0]), rel=1e-6)


def test_the_pipe_is_that_of_the_samples(result):
    layers = named(capture_figures.pipe(view(result.data), flow=0))
    samples = result.data.flow_samples.filter(pl.col("flow") == 0).sort("time_s")
    np.testing.assert_array_equal(layers["in flight: at most the window"].y, samples["in_flight"].to_numpy())
    assert "receiver’s window" not in layers  # a gigabyte, far above


def by_hand(**rows) -> Dataset:
    """A captured result with these tables, and two flows of 10 s."""
    spool = Spool(names=capture_tables.NAMES)
    flows = {
        "flow": [0, 2],
        "group": [0, 0],
        "congestion": ["unknown"] * 2,
        "start_s": [0.0, 1.0],
        "end_s": [10.0, 9.0],
    }
    for table, columns in {"flows": flows, **rows}.items():
        spool.append(table, columns)
    return spool.dataset({"runs": [{"run": 0}], "capture": {"path": {}}})


def test_stalls_of_one_cause_have_one_colour():
    stalls = {
        "time_s": [2.0, 2.0, 5.0],
        "flow": [0, 2, 2],
        "duration_s": [1.0, 1.0, 0.5],
        "class": ["host", "host", "timeout"],
        "confidence": [1.0] * 3,
    }
    layers = named(capture_figures.stalls(view(by_hand(stalls=stalls))))
    host = layers["host stalled (2)"]
    assert list(host.x), list(host.x_end) == ([2.0, 2.0], [3.0, 3.0])
    assert list(host.y) == [0.0, 1.0]  # a place for each flow
    assert any(name.endswith("(1)") for name in layers)


def test_the_level_is_marked_with_its_depth_and_its_losses():
    levels = {"time_s": [0.1, 0.2, 0.3], "level_bytes": [5e3, 2e4, 1e4], "lost": [False, True, False]}
    data = by_hand(levels=levels)
    path = {"limiter": "policer", "rate_bps": 8e6, "depth_bytes": 2e4}
    drawing = capture_figures.level(view(replace(data, manifest={**data.manifest, "capture": {"path": path}})))
    layers = named(drawing)
    assert list(layers["lost"].y) == [20.0]
    assert list(layers["passed"].y) == [5.0, 10.0]
    assert drawing.panels[0].references[0][0] == 20.0
    assert drawing.title == "Bytes above 8.00 Mb/s (policer)"


@pytest.mark.parametrize("kind", [kind for kind in capture_figures.KINDS if kind != "stalls"])
def test_without_its_table_each_kind_reports_what_is_missing(kind):
    with pytest.raises(InputError, match="the result holds no"):
        capture_figures.KINDS[kind](view(by_hand()))


def test_a_run_has_no_stalls(run):
    with pytest.raises(InputError, match="expected what ackclock capture wrote"):
        capture_figures.stalls(view(run[0]))


def test_curves_of_runs_are_lines(run):
    assert isinstance(named(capture_figures.pipe(view(run[0])))["congestion window"], Line)
