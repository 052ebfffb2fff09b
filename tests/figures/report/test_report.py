import base64
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
import synthetic
from small_networks import dumbbell

import ackclock as ac
from ackclock import metrics
from ackclock.dataset import Dataset
from ackclock.errors import InputError
from ackclock.figures import report, summary_text

EVIL = "</script><script>alert(1)</script> \"x\" & 'y'"


@pytest.fixture(scope="module")
def demo() -> Dataset:
    return synthetic.sawtooth(flow_count=10, seeds=3, duration_s=30, warmup_s=5, step_s=0.05)


@pytest.fixture(scope="module")
def page(demo: Dataset) -> str:
    return report.render([demo])


def named(data: Dataset, name: str, **manifest: object) -> Dataset:
    return replace(data, manifest={**data.manifest, "plan": {**data.manifest["plan"], "name": name}, **manifest})


def body(page: str) -> str:
    """Return the visible text: no scripts, no styles, no tags."""
    bare = re.sub(r"<(script|style)\b.*?</\1>", " ", page, flags=re.S)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", bare))


def specs(page: str) -> dict:  # type: ignore[type-arg]
    outcome = re.search(r'<script type="application/json" id="figures">(.*?)</script>', page, re.S)
    assert outcome
    return json.loads(outcome[1])


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "br", "link", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_conclusions_are_first(page: str) -> None:
    words = body(page)
    assert re.search(r"Ten flows shared the bottleneck: together they used 100(\.\d)? % of its 100 Mb/s", words)
    assert words.index("Ten flows shared") < words.index("Mean queueing delay") < words.index("Congestion windows")
    assert "Means over 3 runs with different seeds" in words


def test_the_tags_close_and_nothing_is_loaded(page: str) -> None:
    tags = Tags()
    tags.feed(page)
    assert tags.open == []
    for tag, attributes in tags.tags:
        assert tag not in ("link", "iframe", "object", "embed", "img")
        assert not {"src", "srcset", "action"} & set(attributes)
        assert (attributes.get("href") or "#").startswith("#")
    policy = next(a["content"] for t, a in tags.tags if t == "meta" and a.get("http-equiv"))
    assert policy is not None
    assert "default-src 'none'" in policy


def test_it_holds_every_figure_the_metrics_and_their_definitions(page: str) -> None:
    assert list(specs(page)) == [f"result0-{k}" for k in ("cwnd", "cwnd_total", "goodput", "queue", "cdf", "epochs")]
    words = body(page)
    assert "Jain, Chiu, Hawe 1984" in words
    assert "flow_samples" not in words


def test_response_times_are_shown_from_twenty_finished_transfers_on() -> None:
    enough = report.render([synthetic.transfers(seeds=1)])
    figure = specs(enough)["result0-response"]
    assert [trace["name"] for trace in figure["data"]] == ["cubic: 234 finished, 16 not"]
    assert "transfers were not finished" in body(enough)
    assert "result0-response" not in specs(report.render([synthetic.transfers(count=20, seeds=1)]))


def test_figures_are_described_for_those_who_cannot_observe_them(page: str) -> None:
    tags = Tags()
    tags.feed(page)
    ids = {a["id"] for _, a in tags.tags if "id" in a}
    plots = [a for _, a in tags.tags if a.get("role") == "img"]
    assert len(plots) == 6
    for plot in plots:
        assert plot["aria-labelledby"] in ids
        assert plot["aria-describedby"] in ids


def test_what_the_user_wrote_is_text(demo: Dataset) -> None:
    page = report.render([named(demo, EVIL, scenario=EVIL, command=EVIL, scenario_path=EVIL, engine=EVIL)])
    ordinary = report.render([demo])
    assert page.count("<script") == ordinary.count("<script")
    assert "alert(1)</script>" not in page
    assert "&lt;script&gt;alert(1)" in page
    tags = Tags()
    tags.feed(page)
    assert tags.open == []


def test_names_inside_figures_cannot_end_the_script(demo: Dataset) -> None:
    page = report.render([named(demo, EVIL), named(demo, "other")])
    names = {trace["name"] for trace in specs(page)["together-goodput"]["data"]}
    assert EVIL in names
    assert page.count("alert(1)</script>") == 0


def test_one_run_is_flagged_and_has_no_interval() -> None:
    one = synthetic.sawtooth(flow_count=3, seeds=1, duration_s=20, warmup_s=5, step_s=0.05)
    words = body(report.render([one]))
    assert "One run: no intervals" in words
    assert "This is one run" in words
    assert "n = 1" in words


def values(column: dict[str, str]) -> np.ndarray:
    return np.frombuffer(base64.b64decode(column["bdata"]), column["dtype"])


def with_udp() -> Dataset:
    """8 Mb/s of TCP, and 2 Mb/s of UDP from 2 s on, measured from 4 s to 10 s; of two links the second is busier."""
    times_s = np.arange(1, 101) / 10
    delivered = np.column_stack([1e6 * times_s, 0.25e6 * np.clip(times_s - 2, 0, None)])
    link = synthetic.plan(rate_bps=1e7, duration_s=10)["links"][0]
    plan = synthetic.plan(
        rate_bps=1e7,
        duration_s=10,
        warmup_s=4,
        links=[{**link, "name": "up"}, {**link, "name": "down"}],
        datagrams=[{"start_s": 2.0, "stop_s": None}],
    )
    flows = synthetic.flows(
        2,
        congestion=["cubic", "udp"],
        start_s=[0.0, 2.0],
        measured_sent_packets=[600, 1500],
        measured_retransmissions=[6, None],
        measured_bytes=[6_000_000, 1_500_000],
        delivered_bytes=[10_000_000, 2_000_000],
    )
    links = {"link": [0, 1], "name": ["up", "down"], "bottleneck": [True, True], "rate_bps": [1e7, 1e7]}
    queue = {"time_s": [5.0, 5.0, 6.0, 6.0], "link": [0, 1, 0, 1], "backlog_p": [1, 20, 2, 30]}
    tables = {
        "flows": flows,
        "flow_samples": synthetic.samples(times_s, delivered_bytes=delivered),
        "links": {**links, "departed_bytes": [1_000_000, 7_500_000]},
        "queue_samples": {**queue, "sojourn_s": [0.001, 0.02, 0.002, 0.03]},
    }
    return synthetic.dataset(plan, tables)


def test_udp_is_in_the_figure_and_in_the_table() -> None:
    page = report.render([with_udp()])
    figure = specs(page)["result0-goodput"]
    last = {trace["name"]: values(trace["y"])[-1] for trace in figure["data"]}
    assert last["flow 0"] == pytest.approx(8.0)
    assert last["flow 1 udp"] == pytest.approx(2.0)
    assert last["all flows"] == pytest.approx(8.0), "of TCP"
    read = body(page)
    assert "One flow shared up and down (two links of 2 that limited flows) with one UDP flow" in read
    assert re.search(r"0 cubic 100 ms 0 s 8\.00 Mb/s 100 % 1\.0 % – 1 udp 100 ms 2\.00 s 2\.00 Mb/s – – –", read)


def test_competing_groups_are_columns_and_their_smallest_share_is_a_main_number() -> None:
    """Jain's index of like flows is 1 here whatever one group leaves to the other: it is no headline."""
    flows = '[[flows]]\ncongestion = "reno"\n[[flows]]\ncongestion = "bbr"\nname = "fast"'
    data = ac.run(ac.loads(f'duration = "4s"\n{dumbbell("5Mbit", "20ms")}\n{flows}'))
    words = body(report.render([data]))
    assert re.search(r"Who got what\. reno fast Flows 1 1 Goodput [\d.]+ [kM]b/s [\d.]+ [kM]b/s ", words)
    assert re.search(r"Total goodput [\d.]+ Mb/s Smallest share of a group [\d.]+ % Mean queueing delay", words)


def test_of_one_flow_nothing_is_shown_that_takes_several() -> None:
    """No fairness, no legend to click, and one panel of goodput, which would be drawn twice."""
    page = report.render([ac.run(ac.loads(f'duration = "4s"\n{dumbbell("5Mbit", "20ms")}\n[[flows]]\nsize = "1MB"'))])
    words = body(page)
    assert "The transfer took" in words
    assert "Total goodput" in words
    assert "Jain's fairness index" not in words[: words.index("The numbers")]
    assert "legend" not in words
    assert "yaxis2" not in specs(page)["result0-goodput"]["layout"]
    assert "yaxis2" in specs(page)["result0-queue"]["layout"]


def test_flows_are_counted_on_average_over_the_runs() -> None:
    """Traffic that is drawn makes other transfers in each run; 7 and 12 are 9.5 on average."""
    view = next(metrics.runs(synthetic.sawtooth(flow_count=7, seeds=1)))
    subject = summary_text.subject_of("x", view, {}, [7, 12], (None, None))
    assert (subject.flows, subject.seeds) == (round(9.5), 2)


def test_of_several_bottlenecks_the_busiest_is_drawn() -> None:
    page = report.render([with_udp()])
    queue = specs(page)["result0-queue"]
    assert list(values(queue["data"][0]["y"])) == [20, 30]
    assert "Packets waiting at down, the busiest of 2 bottlenecks" in body(page)
    assert "rate" not in json.dumps(specs(page)["result0-goodput"]["layout"]["annotations"]), "none limits the sum"


def test_the_rate_of_a_single_bottleneck_is_drawn(page: str) -> None:
    assert "link<br>rate" in json.dumps(specs(page)["result0-goodput"]["layout"]["annotations"])


def test_a_distribution_that_no_run_has_takes_no_room() -> None:
    layout = specs(report.render([with_udp()]))["result0-cdf"]["layout"]
    titles = [axis["title"]["text"] for name, axis in layout.items() if name.startswith("xaxis")]
    assert titles == ["Goodput of a flow (Mb/s)"]


def test_each_run_has_a_distribution_which_the_pointer_names(page: str) -> None:
    lines = [trace for trace in specs(page)["result0-cdf"]["data"] if trace["xaxis"] == "x"]
    assert [trace["name"] for trace in lines] == ["each run"] * 3 + ["all runs together"]
    assert [trace["showlegend"] for trace in lines] == [True, False, False, True]
    assert [trace["hovertemplate"].partition("<extra>")[2] for trace in lines[:3]] == [
        f"seed {number}</extra>" for number in (1, 2, 3)
    ]


def test_several_results_appear_side_by_side(demo: Dataset) -> None:
    other = synthetic.sawtooth(flow_count=4, seeds=2, duration_s=20, warmup_s=5, step_s=0.05)
    page = report.render([demo, other])
    words = body(page)
    assert "Two results compared" in words
    assert {"together-goodput", "together-queue", "together-cdf", "result0-cwnd", "result1-cwnd"} <= set(specs(page))
    assert "10 CUBIC flows through one bottleneck" in words
    assert "4 CUBIC flows through one bottleneck" in words


def test_results_of_one_scenario_have_distinct_names(demo: Dataset) -> None:
    by_engine = body(report.render([demo, replace(demo, manifest={**demo.manifest, "engine": "fluid"})]))
    assert "· packet" in by_engine
    assert "· fluid" in by_engine
    by_folder = body(report.render([demo, demo], ["small-buffer", "large-buffer"]))
    assert "· small-buffer" in by_folder
    assert "· large-buffer" in by_folder


def test_a_result_without_samples_still_reports_its_numbers() -> None:
    rows = {"flows": synthetic.flows(2, measured_bytes=[5_000_000, 5_000_000])}
    data = synthetic.dataset(synthetic.plan(rate_bps=1e7, duration_s=10), rows)
    page = report.render([data])
    assert "8.00 Mb/s" in body(page)
    assert set(specs(page)) <= {"result0-cdf"}


def test_a_long_manifest_is_cut(demo: Dataset) -> None:
    plan = {**demo.manifest["plan"], "flows": [{"group": n} for n in range(5000)]}
    page = report.render([replace(demo, manifest={**demo.manifest, "plan": plan})])
    assert "4,988 more in manifest.json" in page


def test_it_is_small(demo: Dataset) -> None:
    long = synthetic.sawtooth(flow_count=10, seeds=5, duration_s=60)
    page = report.render([long])
    assert len(page.encode()) < 4e6
    crowd = synthetic.sawtooth(flow_count=300, seeds=1, duration_s=20, warmup_s=5, step_s=0.05)
    assert len(report.render([long, demo, crowd, long]).encode()) < 6e6


def test_write_is_complete_or_not_at_all(tmp_path: Path, demo: Dataset) -> None:
    place = demo.write(tmp_path / "result")
    out = report.write([place], tmp_path / "report.html")
    assert out.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report.html", "result"]
    assert report.write([place], tmp_path / "new" / "report.html").is_file()
    with pytest.raises(InputError, match="cannot be written"):
        report.write([place], out / "report.html")
    with pytest.raises(InputError, match="no such result folder"):
        report.write([tmp_path / "none"], tmp_path / "nowhere" / "report.html")
    assert not (tmp_path / "nowhere").exists()
    with pytest.raises(InputError, match="nothing to report on"):
        report.render([])


def test_the_bundle_is_named_with_its_licence() -> None:
    assets = Path(report.__file__).parent / "assets"
    bundle = (assets / "plotly-cartesian.min.js").read_text(encoding="utf-8")
    version = re.search(r"plotly\.js \(cartesian - minified\) v([\d.]+)", bundle)
    assert version
    assert f"plotly.js {version[1]}" in (assets / "README.md").read_text(encoding="utf-8")
    assert "MIT" in (assets / "README.md").read_text(encoding="utf-8")
    assert "Permission is hereby granted" in (assets / "plotly-LICENSE.txt").read_text(encoding="utf-8")
    assert "</script" not in bundle.lower()
