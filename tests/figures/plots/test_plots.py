import io
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from small_networks import dumbbell

import ackclock as ac
from ackclock import metrics
from ackclock.cli import plot as cli_plot
from ackclock.dataset import Dataset, Part
from ackclock.errors import InputError
from ackclock.figures import curves, plots, result_figures, run_figures
from ackclock.metrics import delay as delay_metrics
from ackclock.metrics.distributions import empirical


@pytest.fixture(scope="module")
def demo() -> Dataset:
    return synthetic.sawtooth(flow_count=10, seeds=2, duration_s=30, warmup_s=5, step_s=0.05)


@pytest.fixture(scope="module")
def crowd() -> Dataset:
    return synthetic.sawtooth(flow_count=100, seeds=1, duration_s=20, warmup_s=5, step_s=0.05)


def drawable(data: Dataset, kind: str) -> Dataset:
    """Data for a kind: response times need transfers that end, unlike the endless flows of `data`."""
    return named(synthetic.transfers(), data.manifest["plan"]["name"]) if kind == "response" else data


def named(data: Dataset, name: str) -> Dataset:
    return replace(data, manifest={**data.manifest, "plan": {**data.manifest["plan"], "name": name}})


def mixed(data: Dataset, name: str) -> Dataset:
    even = pl.col("flow") % 2 == 0
    flows = data.frame("flows").with_columns(congestion=pl.when(even).then(pl.lit("reno")).otherwise(pl.lit("cubic")))
    return replace(named(data, name), parts={**data.parts, "flows": (Part(flows),)})


def texts(figure: Figure) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="svg")
    return buffer.getvalue().decode()


@pytest.mark.parametrize("kind", plots.KINDS)
def test_every_kind_reports_what_it_shows_with_units(demo: Dataset, kind: str) -> None:
    figure = plots.KINDS[kind](drawable(demo, kind))
    words = [axes.get_xlabel() + axes.get_ylabel() for axes in figure.axes]
    words += [figure.get_supylabel()]
    assert re.search(r"\((s|ms|Mb/s|segments|packets)\)", "".join(words))
    svg = texts(figure)
    assert "10 CUBIC flows through one bottleneck" in svg
    assert "2 runs" in svg
    assert "nan" not in svg.lower().replace("financ", "")


@pytest.mark.parametrize("kind", plots.KINDS)
def test_every_kind_takes_a_crowd_without_a_long_legend(crowd: Dataset, kind: str) -> None:
    figure = plots.KINDS[kind](drawable(crowd, kind))
    entries = [text for legend in figure.legends for text in legend.get_texts()]
    assert len(entries) <= 4
    assert len(texts(figure)) < 3_000_000


@pytest.mark.parametrize("kind", plots.KINDS)
def test_odd_names_are_text_and_not_markup(demo: Dataset, kind: str) -> None:
    svg = texts(plots.KINDS[kind](mixed(drawable(demo, kind), "costs $5 & <b>$x_1^$")))
    assert "costs $5" in svg


@pytest.mark.parametrize("kind", plots.KINDS)
def test_the_callers_settings_stay_as_they_are(demo: Dataset, kind: str) -> None:
    import matplotlib as mpl

    before = dict(mpl.rcParams)
    plots.KINDS[kind](drawable(demo, kind))
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize("kind", [kind for kind in plots.KINDS if kind not in ("cdf", "epochs", "response", "boxes")])
def test_without_samples_present_is_a_reason(kind: str) -> None:
    rows = {"flows": synthetic.flows(2), "links": synthetic.link()}
    data = synthetic.dataset(synthetic.plan(rate_bps=1e7, duration_s=10), rows)
    with pytest.raises(InputError, match=r"no (flow|queue) samples"):
        plots.KINDS[kind](data)
    with pytest.raises(InputError, match="no runs"):
        plots.KINDS[kind](Dataset({"runs": []}, {}))


def test_boxes_have_the_median_and_the_extremes_of_each_result() -> None:
    made = [synthetic.sawtooth(flow_count=count, seeds=1, duration_s=20, warmup_s=2, step_s=0.05) for count in (5, 3)]
    axes = plots.boxes(made[0], over=made[1]).axes
    (window,) = [each for each in axes if each.get_ylabel() == "Mean window (segments)"]
    assert [label.get_text() for label in window.get_xticklabels()] == ["3", "5"]
    values = metrics.flow_means(made[0])["window"]
    ends = {float(value) for line in window.lines for value in line.get_ydata()}
    assert {values.min(), values.max()} <= ends
    with pytest.raises(InputError, match="no flows to draw"):
        plots.boxes(Dataset({"runs": []}, {}))


def test_response_draws_the_means_of_its_table() -> None:
    data = synthetic.transfers(seeds=1)
    line = plots.response(data).axes[0].lines[0]
    result = metrics.response_times(data)
    np.testing.assert_allclose(line.get_xdata(), [0.01, 0.1, 1.0])  # MB
    np.testing.assert_allclose(line.get_ydata(), result["mean_s"].to_numpy())


def test_without_finished_transfers_present_is_no_response_time(demo: Dataset) -> None:
    with pytest.raises(InputError, match="no finished transfers"):
        plots.response(demo)


def test_completion_times_have_a_panel_where_transfers_were_finished(demo: Dataset) -> None:
    def labels(data: Dataset) -> str:
        return " ".join(axes.get_xlabel() for axes in plots.cdf(data).axes if axes.get_visible())

    assert "Completion time" in labels(synthetic.transfers())
    assert "Completion time" not in labels(demo)


def test_cwnd_draws_the_samples(demo: Dataset) -> None:
    figure = plots.cwnd(demo)
    first = demo.flow_samples.filter(pl.col("run") == 0, pl.col("flow") == 0).drop_nulls("cwnd")
    drawn = figure.axes[0].lines[1].get_xydata()
    assert drawn.shape == (first.height, 2)
    np.testing.assert_allclose(drawn[:, 1], first["cwnd"].to_numpy())


def test_mixed_controls_are_named(demo: Dataset) -> None:
    svg = texts(plots.goodput(mixed(demo, "two controls")))
    assert "flow 0 reno" in svg
    assert "flow 1 cubic" in svg


@pytest.fixture(scope="module")
def delayed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A result with two groups of one congestion control algorithm, and their delays recorded."""
    folder = tmp_path_factory.mktemp("delayed")
    (folder / "s.toml").write_text(
        'name = "Two groups"\nduration = "1s"\n'
        '[network]\ntopology = "dumbbell"\nrate = "10Mbit"\nrtt = "10ms"\n'
        'queue = { discipline = "pfifo", limit = "1bdp" }\n'
        '[[flows]]\nname = "bulk"\ncongestion = "cubic"\n[[flows]]\nname = "thin"\ncongestion = "cubic"\n'
        "[record]\ndelays = true\n",
        encoding="utf-8",
    )
    return ac.run(folder / "s.toml").write(folder / "result")


def test_flows_of_two_groups_are_named_by_them(delayed: Path) -> None:
    for draw in (plots.delay, plots.goodput):
        svg = texts(draw(Dataset.read(delayed)))
        assert "flow 0 bulk" in svg
        assert "flow 1 thin" in svg


def test_delays_of_many_flows_are_means_over_longer_intervals(delayed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = delay_metrics.one_way_series(next(metrics.runs(Dataset.read(delayed))))
    times, flows = rows["time_s"].n_unique(), rows["flow"].n_unique()
    assert run_figures._merged(rows, flows) is rows
    monkeypatch.setattr(curves, "CELLS", times * flows // 3)
    merged = run_figures._merged(rows, flows)
    assert merged["time_s"].n_unique() <= -(-times // 3)
    assert merged["time_s"].max() == rows["time_s"].max()
    for flow in (0, 1):
        own = rows.filter(pl.col("flow") == flow)
        (first, *_) = sorted(merged.filter(pl.col("flow") == flow).select("time_s", "delay_mean_s").iter_rows())
        within = own.filter(pl.col("time_s") <= first[0])
        assert first[1] == pytest.approx(np.average(within["delay_mean_s"], weights=within["packets"]))


def test_plot_without_a_kind_builds_one_figure(delayed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = []
    figure = cli_plot._figure
    monkeypatch.setattr(cli_plot, "_figure", lambda *given: drawn.append(given[1]) or figure(*given))
    path = cli_plot.draw(delayed, None, None)
    assert (path.name, drawn) == ("cwnd.png", ["cwnd"])
    with pytest.raises(InputError, match=r"--label: found 1 name; expected 2"):
        cli_plot.draw(delayed, None, None, page=cli_plot.Page(labels=["one"]))


def test_epochs_show_every_drop(demo: Dataset) -> None:
    view = next(metrics.runs(demo))
    figure = plots.epochs(demo)
    assert figure.axes[0].lines[0].get_xdata().size == view.drops.height > 0


def test_no_drop_is_reported() -> None:
    rows = {"flows": synthetic.flows(2), "links": synthetic.link(dropped_p=0)}
    data = synthetic.dataset(synthetic.plan(rate_bps=1e7, duration_s=10), rows)
    assert "no packet was dropped" in texts(plots.epochs(data))


def test_bandwidth_delay_product_and_limit(demo: Dataset) -> None:
    view = next(metrics.runs(demo))
    assert curves.pipe_segments(view) == pytest.approx(1e8 * 0.1 / 8 / 1514)
    assert curves.queue_limit(view) == 825


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=3000), st.integers(8, 400))
def test_thinning_keeps_peaks_ends_and_order(values: list[float], points: int) -> None:
    x, y = np.arange(len(values), dtype=float), np.array(values)
    thin_x, thin_y = curves.thinned(x, y, points)
    assert thin_y.min() == y.min()
    assert thin_y.max() == y.max()
    assert (thin_x[0], thin_x[-1]) == (x[0], x[-1])
    assert (np.diff(thin_x) > 0).all()
    assert set(zip(thin_x, thin_y, strict=True)) <= set(zip(x, y, strict=True))
    assert thin_x.size <= points + 4


def test_thinning_drops_gaps() -> None:
    x, y = np.arange(5.0), np.array([1.0, math.nan, 3.0, math.nan, 5.0])
    assert [list(part) for part in curves.thinned(x, y, 100)] == [[0, 2, 4], [1, 3, 5]]
    assert [list(part) for part in curves.thinned(x, np.full(5, math.nan), 2)] == [[], []]


def test_distribution_function() -> None:
    values, share = empirical(np.array([3.0, 1.0, math.nan, 2.0]), np.array([1.0, 1.0, 9.0, 2.0]))
    assert list(values) == [1, 2, 3]
    assert list(share) == [0.25, 0.75, 1.0]


def test_transfers_of_sizes_of_which_none_finished_are_in_the_caption() -> None:
    table = metrics.response_times(synthetic.transfers(seeds=1))
    lost = table.tail(1).with_columns(n=0, unfinished=3, size_low_bytes=10**7, size_high_bytes=10**7)
    drawing = result_figures.response(pl.concat([table, lost.cast(table.schema)]))
    assert f"{table['unfinished'].sum() + 3} transfers were not finished" in drawing.caption


def test_goodput_of_udp_flows_only() -> None:
    """100 datagrams of 1,000 bytes a second are 0.8 Mb/s, on time as soon as the window is full."""
    traffic = '[[traffic]]\nkind = "udp"\nrate = "100/s"\npacket = "1000B"'
    data = ac.run(ac.loads(f'duration = "5s"\n{dumbbell("2Mbit", "20ms")}\n{traffic}'))
    view = next(iter(metrics.runs(data)))
    window_s = curves.goodput_window(view)
    times_s = curves.goodputs(view, window_s).times_s
    rates_bps = curves.datagram_goodputs(view, times_s, window_s).values[times_s > window_s + 0.1]
    assert rates_bps == pytest.approx(np.full(rates_bps.shape, 0.8e6), rel=0.05)
    assert "flow 0" not in texts(plots.KINDS["goodput"](data))  # a single curve needs no legend


def test_samples_of_no_flow_are_not_drawn_and_have_no_share() -> None:
    """A rejected connection, flow 0, was sampled, but is not in the table of flows."""
    times_s = np.arange(0.5, 10.5, 0.5)
    delivered_bytes = np.outer(1e6 * times_s, [0, 1, 1]).astype(np.uint64)
    rows = synthetic.flows(3)
    tables = {
        "flows": {name: column[1:] for name, column in rows.items()},
        "flow_samples": synthetic.samples(times_s, delivered_bytes=delivered_bytes),
    }
    data = synthetic.dataset(synthetic.plan(rate_bps=2e7, duration_s=10.0), tables)
    assert curves.goodputs(next(iter(metrics.runs(data)))).labels == ("flow 1", "flow 2")
    legend = texts(plots.KINDS["goodput"](data))
    assert "flow 1" in legend
    assert "flow 0" not in legend


def test_goodput_of_late_flows() -> None:
    """Soon after its start at 2 s, what it delivered counts over the window, which is longer than it is there."""
    late = '[[flows]]\ncongestion = "cubic"\nstart = "2s"'
    view = next(iter(metrics.runs(ac.run(ac.loads(f'duration = "20s"\n{dumbbell("8Mbit", "40ms")}\n{late}')))))
    lines, window_s = curves.goodputs(view), curves.goodput_window(view)
    assert window_s > 1.0
    place = int(np.searchsorted(lines.times_s, 2.5))
    samples = view.rows("flow_samples").frame().filter(pl.col("time_s") == lines.times_s[place])
    assert lines.values[place, 0] == pytest.approx(8 * samples["delivered_bytes"][0] / window_s)


@pytest.mark.parametrize(
    ("queue", "title"),
    [
        ('{ discipline = "dualpi2" }', "Queue at the bottleneck: the queues of dualpi2 together"),
        ('{ discipline = "pfifo", limit = "20p" }', "Queue at the bottleneck"),
    ],
)
def test_the_samples_of_several_queues_are_announced_as_their_sum(queue: str, title: str) -> None:
    network = f'[network]\ntopology = "dumbbell"\nrate = "10Mbit"\nrtt = "20ms"\nqueue = {queue}\n'
    data = ac.run(ac.loads(f'duration = "2s"\n{network}[[flows]]\n'))
    drawing = run_figures.queue(next(metrics.runs(data)))
    assert drawing.title == title
    assert ("the L queue and the C queue" in drawing.caption) == ("dualpi2" in queue)
