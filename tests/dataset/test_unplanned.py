"""A result that was never planned, as a capture is, goes through every view: what is not known is null, or one line."""

from __future__ import annotations

import numpy as np
import pytest
import synthetic
from click.testing import CliRunner

from ackclock import metrics
from ackclock.cli.program import application
from ackclock.cli.terminal.result import print_result
from ackclock.dataset import Dataset, Spool, tables
from ackclock.errors import InputError
from ackclock.experiments.comparison import Comparison
from ackclock.figures import plots, report

#: Metrics that two flows have by their starts, ends, round-trip times and acknowledged bytes.
AVAILABLE = {
    "goodput_bps": 1.35e6,
    "flows_active": 2.0,
    "goodput_mean_bps": 0.75e6,
    "goodput_min_bps": 0.5e6,
    "goodput_max_bps": 1.0e6,
    "jain": 0.9,
    "jain[*]": 0.9,
    "max_min_fairness": 2 / 3,
    "proportional_fairness": np.sqrt(8 / 9),
    "epsilon_fairness": 0.5,
    "cov_goodput": 1 / 3,
    "sd_goodput_bps": 0.25e6,
    "rtt_mean_s": 0.05,
    "rtt_p95_s": 0.05,
    "fct_mean_s": 8.0,
    "fct_p95_s": 8.0,
    "fct_p99_s": 8.0,
    "fct_km_mean_s": 8.0,
    "fct_km_median_s": 8.0,
    "unfinished": 0.0,
    "unfinished_share": 0.0,
    "cov_goodput_time": 0.0,
    "sd_goodput_time_bps": 0.0,
}
DRAWN = {"boxes", "goodput", "cdf", "response"}
#: Plans of which next to nothing is known.
PLANS = (None, {}, {"name": "two uploads"}, {"links": None, "flows": [{}, {}], "groups": [{}], "datagrams": []})


@pytest.fixture(scope="module")
def data() -> Dataset:
    return synthetic.unplanned()


@pytest.fixture(scope="module")
def folder(data, tmp_path_factory):
    return data.write(tmp_path_factory.mktemp("results") / "upload")


def call(*arguments):
    return CliRunner().invoke(application, [str(argument) for argument in arguments])


@pytest.mark.parametrize("plan", PLANS)
def test_every_metric_that_the_flows_report_is_present_and_the_rest_is_null(plan):
    outcome = metrics.table(synthetic.unplanned(plan=plan))
    (run,) = outcome["runs"]
    assert run["seed"] is None
    assert run["metrics"].pop("goodput_flow_bps") == pytest.approx([0.95e6, 0.4e6])
    assert {name: value for name, value in run["metrics"].items() if value is not None} == pytest.approx(AVAILABLE)
    assert outcome["engine"] is None


def test_the_run_lasts_until_the_last_that_was_captured_of_it(data):
    (view,) = metrics.runs(data)
    assert (view.warmup_s, view.duration_s) == (0.0, 10.0)
    (longer,) = metrics.runs(synthetic.unplanned(plan={"duration_s": 20, "warmup_s": 5}))
    assert (longer.warmup_s, longer.duration_s) == (5.0, 20.0)
    (empty,) = metrics.runs(Spool().dataset({"runs": [{"run": 0}]}))
    assert empty.duration_s == 0.0
    assert set(metrics.of_run(empty).values()) == {None}


def test_a_part_of_it_is_measured_too(data):
    outcome = metrics.table(data, between=(2.0, 4.0))["runs"][0]["metrics"]
    assert outcome["goodput_flow_bps"] == pytest.approx([1e6, 0.5e6])
    with pytest.raises(InputError, match="expected a part of 0 s to 10 s"):
        metrics.table(data, between=(2.0, 40.0))


def test_samples_that_do_not_report_the_bytes_give_no_goodput():
    spool = Spool()
    spool.append("flows", synthetic.flows(1))
    spool.append("flow_samples", {"time_s": [1.0, 2.0], "flow": [0, 0], "srtt_s": [0.1, 0.2]})
    bare = spool.dataset({"runs": [{"run": 0}]})
    outcome = metrics.table(bare)["runs"][0]["metrics"]
    assert outcome["goodput_bps"] is None
    assert outcome["rtt_mean_s"] == pytest.approx(0.15)
    with pytest.raises(InputError, match="no bytes delivered to draw"):
        plots.goodput(bare)


@pytest.mark.parametrize("kind", plots.KINDS)
def test_every_figure_is_drawn_or_reports_what_is_missing(data, kind):
    if kind in DRAWN:
        assert plots.KINDS[kind](data).axes
    else:
        with pytest.raises(InputError, match=r"^the result (has|names) no [^\n]*$"):
            plots.KINDS[kind](data)


def test_it_lies_over_a_planned_result(data):
    planned = synthetic.sawtooth(flow_count=2, seeds=1, duration_s=10.0, warmup_s=1.0)
    assert plots.goodput(planned, over=data).axes
    assert plots.cdf(data, over=planned).axes


def test_the_report_reports_what_was_captured(data):
    page = report.render([data], ["upload"])
    assert "<h1>upload</h1>" in page
    assert "Two flows were seen: together they delivered 1.35 Mb/s of data." in page
    assert "Shown is the run. " in page
    assert "Where it comes from" in page
    assert not any(wrong in page for wrong in ("Run it again", "Save the scenario", "bottleneck:", "seed None"))


def test_the_report_sets_it_with_a_planned_result(data):
    planned = synthetic.sawtooth(flow_count=2, seeds=1, duration_s=10.0, warmup_s=1.0)
    page = report.render([planned, data], ["planned", "upload"])
    assert page.count("Save the scenario") == 1
    assert "Total goodput" in page


def test_a_comparison_has_its_metrics(data):
    planned = synthetic.sawtooth(flow_count=2, seeds=1, duration_s=10.0, warmup_s=1.0)
    compared = Comparison("two", {"packet": planned, "capture": data}, {}, frozenset())
    rows = {(row["metric"], row["engine"]): row for row in compared.table.to_dicts()}
    assert rows["goodput_bps", "capture"]["mean"] == pytest.approx(1.35e6)
    assert rows["goodput_bps", "capture"]["difference"] is not None
    assert rows["utilisation", "capture"]["mean"] is None
    assert compared.runs["seed"].to_list() == [1, None]


def test_the_terminal_shows_its_table(data, capsys):
    print_result(data, metrics.table(data))
    shown = capsys.readouterr().out
    assert "1.35 Mb/s" in shown
    assert "None" not in shown


def test_it_is_written_and_read_repeatedly(data, folder):
    again = Dataset.read(folder)
    assert all(again.frame(table).equals(data.frame(table)) for table in tables.TABLES)
    assert metrics.value(next(metrics.runs(again)), "goodput_bps") == pytest.approx(1.35e6)
    assert again.plan == data.plan
    assert again.plan.duration_s is None
    assert again.plan.links == ()


def test_the_command_line_takes_its_folder(folder, tmp_path):
    reported = call("report", folder, "--out", tmp_path / "report.html")
    assert reported.exit_code == 0, reported.output
    assert "were seen" in (tmp_path / "report.html").read_text(encoding="utf-8")
    drawn = call("plot", folder, "goodput", "--out", tmp_path / "goodput.png")
    assert drawn.exit_code == 0, drawn.output
    refused = call("plot", folder, "queue", "--out", tmp_path / "queue.png")
    assert refused.exit_code == 2
    assert refused.stderr.strip().endswith("the result names no bottleneck link: there is no queue to draw")


@pytest.mark.parametrize("damaged", [{"links": [5]}, {"links": [{"queue": {"discipline": "pfifo"}}]}, ["x"]])
def test_a_damaged_plan_is_one_line(damaged):
    with pytest.raises(InputError, match=r"^plan: found [^\n]*; expected [^\n]*$"):
        metrics.table(synthetic.unplanned(plan=damaged))
