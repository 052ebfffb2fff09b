"""`ackclock compare --try`: paired differences of choices, and the harm that they do to other flows."""

from __future__ import annotations

import html
import json

import pytest
from click.testing import CliRunner
from scipy import stats
from small_networks import dumbbell

import ackclock as ac
from ackclock.cli.program import application
from ackclock.cli.terminal.comparison import _estimate
from ackclock.errors import InputError
from ackclock.experiments import choices

ONE_GROUP = f"""\
name = "small"
duration = "4s"
warmup = "1s"
repeats = 3

{dumbbell("5Mbit", "20ms")}

[[flows]]
count = 2
congestion = "cubic"
start = {{ jitter = "100ms" }}
"""

TWO_GROUPS = (
    ONE_GROUP
    + """
[[flows]]
congestion = "reno"
start = { jitter = "100ms" }
"""
)


WEB = """
[[traffic]]
kind = "web"
size = "20kB"
objects = 2
think = "1s"
"""


def compared(text: str, typed: str, **values: object) -> choices.Choices:
    loaded = ac.loads(text).with_(values)
    return choices.prepare(loaded, choices.choices(typed, loaded)).perform()


def call(folder, text, *arguments):
    (folder / "small.toml").write_text(text)
    return CliRunner().invoke(application, ["compare", str(folder / "small.toml"), *arguments])


def test_each_choice_is_the_scenario_with_it_and_the_same_seeds():
    found = compared(ONE_GROUP, "cubic,vegas")
    assert list(found.labels) == ["cubic", "vegas"]
    own = ac.run(ac.loads(ONE_GROUP).with_({"flows[0].congestion": "vegas"})).metrics()["summary"]["utilisation"]
    row = found.metrics["utilisation"]["vegas"]
    assert {key: row[key] for key in own} == own
    assert found.sweep.table["seed"].to_list() == [1, 2, 3] * 2


@pytest.mark.parametrize(("flows", "shown"), [(1, False), (2, True)])
@pytest.mark.parametrize("arguments", [("--try", "cubic,reno"), ("--engine", "packet,fluid")], ids=" ".join)
def test_one_flow_has_no_fairness(flows, shown, arguments, tmp_path):
    done = call(tmp_path, ONE_GROUP.replace("count = 2", f"count = {flows}"), *arguments)
    assert done.exit_code == 0
    assert ("Jain" in done.output) == shown


def test_differences_are_students_of_pairs():
    found = compared(ONE_GROUP, "limit=4p,12p,40p")
    values = {number: group["queue_delay_mean_s"].to_list() for (number,), group in found.sweep.table.group_by("point")}
    for number, label in ((1, "12p"), (2, "40p")):
        expected = stats.ttest_rel(values[number], values[0]).confidence_interval(0.95)
        row = found.metrics["queue_delay_mean_s"][label]
        assert (row["difference_low"], row["difference_high"]) == pytest.approx((expected.low, expected.high))
        assert row["differs"] == (expected.low > 0 or expected.high < 0)
    assert found.metrics["queue_delay_mean_s"]["4p"]["difference"] is None
    assert found.metrics["queue_delay_mean_s"]["40p"]["differs"]


def test_rounding_is_no_difference():
    """0.3 and 0.1 + 0.2 are one number; without that the difference of 6e-17 ± 0 would be starred as certain."""
    found = choices._difference(dict.fromkeys((1, 2, 3), 0.3), dict.fromkeys((1, 2, 3), 0.1 + 0.2))
    assert (found["difference"], found["differs"]) == (0.0, False)


def test_one_seed_has_a_difference_without_interval():
    row = compared(ONE_GROUP, "codel,pfifo", repeats=1).metrics["queue_delay_mean_s"]["pfifo"]
    assert row["difference"] > 0
    assert (row["difference_low"], row["differs"]) == (None, None)


def test_a_choice_may_be_a_table_with_parameters():
    found = compared(ONE_GROUP, 'cubic,{ kind = "cubic", beta = 0.85 }', repeats=1)
    assert found.key == "flows[0].congestion"
    assert found.labels[0] == "cubic"
    own = ac.run(ac.loads(ONE_GROUP).with_({"repeats": 1, "flows[0].congestion": {"kind": "cubic", "beta": 0.85}}))
    goodput = [row[found.labels[1]]["mean"] for name, row in found.metrics.items() if name == "goodput_bps"]
    assert goodput == [own.metrics()["summary"]["goodput_bps"]["mean"]]
    tables = compared(ONE_GROUP, '{ discipline = "codel", target = "2ms" },pfifo', repeats=1)
    assert tables.key == "network.queue"
    with pytest.raises(InputError, match="--try: found a table without kind or discipline in"):
        compared(ONE_GROUP, "{ beta = 0.85 },cubic")


def prepared(text: str, typed: str) -> tuple[str, ...]:
    """Return the metrics by group of a comparison."""
    loaded = ac.loads(text)
    return tuple(
        name for name in choices.prepare(loaded, choices.choices(typed, loaded)).main.spec.metrics if "_bps[" in name
    )


@pytest.mark.parametrize(
    ("text", "typed", "groups"),
    [
        (ONE_GROUP, "cubic,vegas", []),
        (TWO_GROUPS, "pfifo,codel", ["cubic", "reno"]),
        (TWO_GROUPS, "cubic,vegas", ["cubic", "vegas", "reno"]),
        (TWO_GROUPS + WEB, "cubic,vegas", ["cubic", "vegas", "reno", "cubic web"]),
        (TWO_GROUPS, "cubic,reno", ["cubic"]),  # "reno" is one group with the first choice, both with the second
        (TWO_GROUPS.replace("count = 2", 'count = 2\nname = "bulk"'), "cubic,reno", ["bulk", "reno"]),
        (ONE_GROUP + "".join(f'[[flows]]\nname = "g{n}"\n' for n in range(8)), "pfifo,codel", []),
    ],
)
def test_each_of_several_groups_has_its_goodput(text, typed, groups):
    assert prepared(text, typed) == tuple(
        f"{metric}[{group}]" for metric in ("goodput_bps", "udp_goodput_bps") for group in groups
    )


def test_goodput_by_group_is_in_table_json_and_report(tmp_path):
    text = TWO_GROUPS.replace("count = 2", 'count = 2\nname = "bulk"')
    out = tmp_path / "out"
    done = call(tmp_path, text, "--try", "pfifo,codel", "--repeats", "2", "--out", str(out))
    assert done.exit_code == 0, done.output
    assert "Total goodput, bulk" in done.stdout
    assert "Total goodput, reno" in done.stdout
    assert "Total goodput, bulk" in (out / "report.html").read_text()
    metrics = json.loads((out / "comparison.json").read_text())["metrics"]
    for label in ("pfifo", "codel"):
        parts = (metrics[f"goodput_bps[{group}]"][label]["mean"] for group in ("bulk", "reno"))
        assert sum(parts) == pytest.approx(metrics["goodput_bps"][label]["mean"])


@pytest.mark.parametrize(
    ("mean", "low", "high", "text"),
    [
        (0.719, 0.0, 1.0, "0.719 (0–1)"),
        (0.988, 0.9512, 1.0, "0.988 (0.951–1)"),
        (0.9, 0.85, 0.95, "0.900 ± 0.050"),
        (0.99999, 0.99998, 1.0, "1.0000 ± 0.0000"),
        (0.9, None, None, "0.900"),
        (None, None, None, "–"),
    ],
)
def test_an_interval_that_a_bound_cuts_has_both_ends(mean, low, high, text):
    assert _estimate({"mean": mean, "ci95_low": low, "ci95_high": high}, "1") == text


def test_qdiscs_have_their_own_limits():
    found = compared(ONE_GROUP, "pfifo,codel", repeats=1)
    assert found.key == "network.queue"
    assert found.limits.startswith("Queue limits from the scenario: pfifo ")
    assert found.limits.endswith("; by default, as in Linux: codel 1,000 packets.")
    assert [point["values"]["network.queue"] for point in found.sweep.points][1] == '{ discipline = "codel" }'


def test_harm_is_the_share_of_the_goodput_by_oneself_that_is_lost():
    """Two CUBIC flows beside a Reno flow: it has the link by itself, and a part of it with them."""
    found = compared(TWO_GROUPS, "cubic,reno")
    cubic, reno = of_goodput(found)
    assert (cubic.choice, reno.choice, cubic.group) == ("cubic", "reno", "reno")
    by_itself, shared = (_reno_bytes(flows) for flows in (("reno",), ("cubic", "cubic", "reno")))
    assert cubic.done.mean == pytest.approx(1 - shared / by_itself, abs=0.05)
    assert reno.excess.n == 0  # it is the group's own kind
    assert reno.done == reno.own_kind == cubic.own_kind
    assert cubic.excess.mean == pytest.approx(cubic.done.mean - cubic.own_kind.mean)
    assert cubic.excess.n == 3


def of_goodput(found: choices.Choices) -> list[choices.Harm]:
    return [harm for harm in found.harm if harm.metric == "goodput_bps"]


def test_harm_in_loss_and_delay_is_the_part_that_others_cause():
    """Harm where less is better (Ware 2019): (y - x) / y, with x by oneself and y beside the others."""
    found = compared(TWO_GROUPS, "cubic,vegas", repeats=1, **{"record.delays": True})
    groups = [{"congestion": name, "start": {"jitter": "100ms"}} for name in ("reno", "cubic", "cubic")]
    scenario = ac.loads(ONE_GROUP).with_({"repeats": 1, "record.delays": True})
    alone, beside = (
        ac.run(scenario.with_({"flows": some})).flows.filter(congestion="reno") for some in (groups[:1], groups)
    )
    for metric, column in (("delay_mean_s", "measured_delay_mean_s"), ("retransmission_rate", None)):
        x, y = (_value(flows, column) for flows in (alone, beside))
        (harm, _) = [each for each in found.harm if each.metric == metric]
        assert harm.done.mean == pytest.approx((y - x) / y, abs=0.15)
        assert harm.done.mean < 1
    unrecorded = compared(TWO_GROUPS, "cubic,vegas", repeats=1)
    assert {harm.metric for harm in unrecorded.harm} == {"goodput_bps", "retransmission_rate"}


def _value(flows, column: str | None) -> float:
    row = flows.row(0, named=True)
    return row[column] if column else row["measured_retransmissions"] / row["measured_sent_packets"]


def test_harm_where_less_is_better_is_zero_without_any():
    assert choices._harm({1: 0.0, 2: 0.0, 3: 0.1}, {1: 0.0, 2: 0.2, 3: 0.0}, more=False) == {1: 0.0, 2: 1.0}
    assert choices._harm({1: 0.0, 2: 8.0}, {1: 1.0, 2: 6.0}, more=True) == {2: 0.25}


def _reno_bytes(flows: tuple[str, ...]) -> float:
    """Goodput of the Reno flow in a scenario that has only these flows."""
    groups = [{"congestion": name, "start": {"jitter": "100ms"}} for name in flows]
    table = ac.run(ac.loads(ONE_GROUP).with_({"flows": groups})).flows
    return table.filter(congestion="reno")["measured_bytes"].mean()


def test_the_own_kind_of_a_group_is_run_if_it_is_no_choice():
    (harm, _) = of_goodput(compared(TWO_GROUPS, "cubic,vegas"))
    (_, own) = of_goodput(compared(TWO_GROUPS, "cubic,reno"))
    assert harm.own_kind == own.done


def test_each_other_group_has_its_harm_and_its_own_kind():
    third = """
[[flows]]
congestion = "reno"
start = { jitter = "100ms" }
tcp = { pacing = true }
"""
    found = compared(TWO_GROUPS + third, "cubic,vegas", repeats=2)
    assert [(harm.choice, harm.group) for harm in of_goodput(found)] == [
        ("cubic", "reno"),
        ("cubic", "reno"),
        ("vegas", "reno"),
        ("vegas", "reno"),
    ]
    first, second = of_goodput(found)[:2]
    assert first.done != second.done
    assert first.suffered == second.suffered


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        (ONE_GROUP, "cubic,reno"),
        (TWO_GROUPS, "codel,pfifo"),
        (TWO_GROUPS.replace('congestion = "reno"', 'congestion = "reno"\nsize = "100p"'), "cubic,reno"),
    ],
)
def test_no_harm_without_endless_flows_of_another_group_or_another_algorithm(text, typed):
    found = compared(text, typed, repeats=1)
    assert found.harm == []
    assert found.harm_unknown == ("" if found.key == "network.queue" else choices.NO_OTHERS)


def test_the_command_prints_tables_and_resumes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = call(tmp_path, TWO_GROUPS, "--try", "cubic,vegas")
    assert done.exit_code == 0, done.output
    text = " ".join(done.stdout.split())
    assert "packet engine, 2 choices of flows[0].congestion, 3 runs each, with the same seeds" in text
    assert "Differences to cubic: means over pairs of runs with the same seed" in text
    assert "Harm: the share of its goodput alone that a group loses to another, or of its loss and delay" in text
    main, solo = sorted((tmp_path / "results").iterdir())
    assert solo.name == f"{main.name}-solo"
    assert {"comparison.json", "report.html", "points.parquet", "manifest.json"} < {
        path.name for path in main.iterdir()
    }
    kept = json.loads((main / "comparison.json").read_text())
    again = json.loads(call(tmp_path, TWO_GROUPS, "--try", "cubic,vegas", "--json", "--no-report").stdout)
    assert again == kept
    assert list(again) == ["scenario", "engine", "key", "choices", "metrics", "harm", "warnings"]
    assert again["choices"] == {"cubic": "cubic", "vegas": "vegas"}


def test_the_choices_of_dctcp_have_the_warning(tmp_path):
    out = ("--out", str(tmp_path / "out"), "--seed", "1", "--json")
    found = json.loads(call(tmp_path, ONE_GROUP, "--try", "cubic,dctcp", *out).stdout)
    sentence = found["warnings"][0]
    report = (tmp_path / "out" / "report.html").read_text()
    assert f'<p class="warning">{html.escape(sentence, quote=False)}</p>' in report
    assert sentence.startswith("flows[0].congestion = dctcp: The flows with dctcp rely on ECN marks")


def test_dry_run_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = call(tmp_path, TWO_GROUPS, "--try", "cubic,vegas", "--dry-run")
    assert done.stdout.startswith("flows[0].congestion: cubic, vegas\n")
    assert "(18 runs)" in done.stdout  # 2 choices; the others by themselves, each choice by itself, its own kind
    assert [path.name for path in tmp_path.iterdir()] == ["small.toml"]


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        (("--try", "cubic"), '--try: found one choice, "cubic"; expected two or more, such as cubic,bbr'),
        (("--try", "repeats=1,2"), "--try: found repeats; expected another key: all choices run with the same seeds"),
        (("--try", "cubic,cubik"), '--try: found "cubik"; expected "cubic"'),
        (("--try", "limit=1bdp,3xx"), '--try: network.queue.limit: found "3xx"; expected'),
        (("--try", "network.rat=1Mbit,2Mbit"), '--try: network.rat: found an unknown key; expected "rate"'),
        (("--try", "cubic,reno", "--engine", "packet,fluid"), "--engine: found packet,fluid with --try"),
        ((), "engine: found packet; expected two engines or more, or choices (--try)"),
        (("--engine", "packet,fluid", "--restart"), "--restart: found no --try"),
    ],
)
def test_mistakes_are_one_line(tmp_path, typed, message):
    done = call(tmp_path, ONE_GROUP, *typed)
    assert (done.exit_code, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_scenario_with_a_sweep_is_rejected():
    loaded = ac.loads(f'{ONE_GROUP}[sweep]\n"network.rate" = ["1Mbit", "2Mbit"]\n')
    with pytest.raises(InputError, match=r"found a table \[sweep\]; expected one scenario"):
        choices.prepare(loaded, choices.choices("cubic,reno", loaded))


def test_an_engine_without_finite_flows_reports_no_harm(tmp_path):
    done = call(tmp_path, TWO_GROUPS, "--try", "cubic,reno", "--engine", "fluid", "--out", str(tmp_path / "out"))
    assert done.exit_code == 0, done.output
    text = " ".join(done.stdout.split())
    assert 'Harm to other flows is not reported: Unsupported: engine "fluid" has no finite transfers' in text


def test_a_quic_group_has_its_harm_and_its_own_kind():
    """Its own kind is the first group's flows over QUIC with the algorithm of the other group."""
    quic = TWO_GROUPS.replace('congestion = "reno"', 'transport = "quic"\ncongestion = "reno"')
    found = compared(quic, "reno,cubic", repeats=1)
    assert [(harm.choice, harm.group) for harm in of_goodput(found)] == [("reno", "noq reno"), ("cubic", "noq reno")]
    loaded = ac.loads(quic)
    competition = choices.prepare(loaded, choices.choices("reno,cubic", loaded)).competition
    (first, _) = competition.cases[competition.own_kind[1]]
    assert first == {"count": 2, "transport": "quic", "congestion": "reno", "start": {"jitter": "100ms"}}
