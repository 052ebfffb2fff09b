"""One result laid over another: dashed, in the units and colours of the first."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import synthetic

from ackclock.dataset import Dataset, Part
from ackclock.errors import InputError
from ackclock.figures import overlay, plots, run_figures
from ackclock.metrics import runs


def sawtooth(engine: str, flows: int = 3) -> Dataset:
    made = synthetic.sawtooth(flow_count=flows, seeds=1, duration_s=20, warmup_s=2, step_s=0.05)
    return replace(made, manifest={**made.manifest, "engine": engine})


def averages(engine: str, **metrics: float) -> Dataset:
    """Return the result of an engine without tables."""
    made = synthetic.plan(rate_bps=1e8, duration_s=20, warmup_s=2)
    manifest = synthetic.manifest(made, engine=engine)
    manifest["runs"][0]["metrics"] = metrics
    return Dataset(manifest, {})


def dashed(axes: object) -> list[object]:
    return [line for line in axes.lines if line.get_zorder() == 4]


def legend(figure: object) -> list[str]:
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


@pytest.mark.parametrize("kind", plots.OVERLAID)
def test_every_kind_lays_a_second_result_over_and_names_both(kind: str) -> None:
    alone = plots.KINDS[kind](sawtooth("packet"))
    both = plots.KINDS[kind](sawtooth("packet"), over=sawtooth("fluid"))
    assert sum(len(dashed(axes)) for axes in both.axes) > 0
    assert sum(len(dashed(axes)) for axes in alone.axes) == 0
    assert {"packet", "fluid"} <= set(legend(both))
    assert not {"packet", "fluid"} & set(legend(alone))


@pytest.mark.parametrize("flows", [3, 10, 40])
def test_windows_are_those_of_the_second_result(flows: int) -> None:
    """Equal numbers of flows: each over its own; in a crowd the mean of theirs."""
    other = sawtooth("fluid", flows)
    figure = plots.cwnd(sawtooth("packet", flows), over=other)
    values = other.flow_samples.sort("time_s", "flow")["cwnd"].to_numpy().reshape(-1, flows)
    drawn = dashed(figure.axes[0])
    expected = np.nanmean(values, axis=1) if flows > 12 else values[:, 0]
    np.testing.assert_allclose(drawn[0].get_ydata(), expected, rtol=1e-9)
    assert len(drawn) == (3 if flows == 3 else 1)


def test_the_queue_with_an_overlay_has_no_dashed_lines_of_the_first_result() -> None:
    view = next(runs(sawtooth("packet")))
    for laid, names in ([], 3), (overlay.others(view.data, sawtooth("fluid")), 0):
        panels = run_figures.queue(view, laid).panels
        assert sum(len(panel.references) for panel in panels) == names


def test_fewer_flows_give_their_mean() -> None:
    other = sawtooth("meanfield", 1)
    figure = plots.cwnd(sawtooth("packet", 10), over=other)
    values = other.flow_samples.sort("time_s")["cwnd"].to_numpy()
    np.testing.assert_allclose(dashed(figure.axes[-1])[0].get_ydata(), values)


def test_fewer_lines_with_lines_are_their_mean() -> None:
    other = sawtooth("meanfield", 2)
    drawn = dashed(plots.goodput(sawtooth("packet", 3), over=other).axes[1])
    assert len(drawn) == 1


def test_the_queue_of_the_second_result_is_that_of_the_same_link() -> None:
    """The busiest link of the first is 1, of the second 0; both show link 1."""
    made = synthetic.plan(rate_bps=1e7, duration_s=10)
    made["links"] = [{**made["links"][0], "name": name} for name in ("down", "up")]

    def line(busy: int, backlog: float) -> Dataset:
        links = {
            "link": np.array([0, 1], np.uint32),
            "name": ["down", "up"],
            "bottleneck": [True, True],
            "rate_bps": [1e7, 1e7],
            "departed_bytes": np.array([1000 + 9000 * (busy == link) for link in (0, 1)], np.uint64),
        }
        samples = {
            "time_s": np.repeat([1.0, 2.0], 2),
            "link": np.tile(np.array([0, 1], np.uint32), 2),
            "backlog_p": np.tile([1.0, backlog], 2),
            "sojourn_s": np.tile([0.1, backlog / 10], 2),
        }
        return synthetic.dataset(made, {"flows": synthetic.flows(2), "links": links, "queue_samples": samples})

    figure = plots.queue(line(1, 5.0), over=line(0, 7.0))
    assert dashed(figure.axes[0])[0].get_ydata().tolist() == [7, 7]
    assert dashed(figure.axes[1])[0].get_ydata().tolist() == pytest.approx([700, 700])


def test_several_results_have_dashes_of_their_own() -> None:
    figure = plots.cwnd_total(sawtooth("packet"), over=[sawtooth("fluid"), sawtooth("theory")])
    assert len({str(line._unscaled_dash_pattern) for line in dashed(figure.axes[0])}) == 2
    assert legend(figure) == ["packet", "fluid", "theory"]


def test_averages_are_levels() -> None:
    """10 Mb/s in the unit of the axis; 12.5 segments a flow are 37.5 of three; 0.05 s."""
    model = averages("theory", goodput_bps=1e7, cwnd_mean=12.5, queue_mean_p=7.0, queue_delay_mean_s=0.05)
    data = sawtooth("packet")
    assert _level(plots.goodput(data, over=model).axes[0]) == 10
    assert _level(plots.cwnd_total(data, over=model).axes[0]) == 37.5
    assert _level(plots.queue(data, over=model).axes[0]) == 7
    assert _level(plots.queue(data, over=model).axes[1]) == pytest.approx(50)


def _level(axes: object) -> float:
    (line,) = dashed(axes)
    values = np.unique(line.get_ydata())
    assert values.size == 1
    return float(values[0])


def test_what_is_missing_is_reported_of_the_second_result() -> None:
    with pytest.raises(InputError, match=r"^theory: .*no flow samples"):
        plots.cwnd(sawtooth("packet"), over=averages("theory"))
    with pytest.raises(InputError, match="laid over holds no runs"):
        plots.cwnd(sawtooth("packet"), over=Dataset({"runs": []}, {}))


def test_names_report_results_apart() -> None:
    one, other = sawtooth("packet"), sawtooth("packet")
    renamed = replace(other, manifest={**other.manifest, "plan": {**other.manifest["plan"], "name": "a rerun"}})
    assert overlay.names([one, sawtooth("fluid")]) == ["packet", "fluid"]
    assert overlay.names([one, renamed])[1] == "a rerun"
    assert overlay.names([one, other]) == ["packet (1)", "packet (2)"]


def test_formulas_over_response_times() -> None:
    """Seconds over bytes, drawn in the axes' units, which are MB and ms for transfers of some milliseconds."""
    data = synthetic.transfers()
    fast = data.frame("flows").with_columns(pl.col("fct_s") / 100)
    data = replace(data, parts={**data.parts, "flows": (Part(fast),)})
    figure = plots.response(data, formulas={"one second a megabyte": lambda sizes: sizes / 1e6})
    assert figure.axes[0].get_ylabel().endswith("(ms)")
    (line,) = [line for line in figure.axes[0].lines if line.get_label() == "one second a megabyte"]
    megabytes, milliseconds = line.get_data()
    np.testing.assert_allclose(milliseconds, 1000 * megabytes)
    assert "one second a megabyte" in legend(figure)
