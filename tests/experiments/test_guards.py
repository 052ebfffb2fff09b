"""Guards: each is deserved by one set-up and not by another; warnings of `run`, `sweep` and `compare`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from small_networks import dumbbell

import ackclock as ac
from ackclock.cli.program import application
from ackclock.experiments import guards


def line(rate: str, queue: str, limit: str, count: object, control: str, synchronisation: str) -> str:
    """Return a scenario of like flows over one bottleneck."""
    parts = (
        'duration = "20s"\nwarmup = "5s"',
        dumbbell(rate, "40ms", limit, queue),
        f'[[flows]]\ncount = {count}\ncongestion = "{control}"',
        f'[fluid]\nsynchronisation = "{synchronisation}"\n',
    )
    return "\n".join(parts)


def doubt(engine: str = "fluid", **changed: object) -> str | None:
    usual = {"rate": "200Mbit", "queue": "pfifo", "limit": "0.5bdp", "count": 20, "control": "cubic"}
    usual["synchronisation"] = "normal"
    return guards.model_doubt(ac.loads(line(**(usual | changed))).plan(), engine)


@pytest.mark.parametrize("limit", ["0.3bdp", "0.5bdp", "0.7bdp"])
def test_what_was_compared_is_not_doubted_but_for_who_loses(limit):
    assert doubt(limit=limit, synchronisation="losses") is None
    for engine, more in (("fluid", {}), ("meanfield", {"control": "reno"})):
        said = doubt(engine, limit=limit, **more)
        assert said is not None
        assert said.startswith("Utilisation and mean queue of this model agreed")
        assert said.endswith("its synchronisation may be off by more than 0.1.")


def test_many_flows_and_a_small_queue_are_named():
    """1 Gb/s, 40 ms, 50 flows, a tenth of a bandwidth-delay product: by default two points too low."""
    said = doubt(rate="1Gbit", limit="0.1bdp", count=50)
    assert said is not None
    assert "this has 50 flows, a queue of 0.1 bdp: --engine packet" in said
    assert "\n" not in said


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        ({"count": 1, "rate": "10Mbit"}, "1 flow:"),
        ({"control": "scalable"}, "scalable"),
        ({"rate": "10Gbit"}, "packets for each"),
        ({"limit": "0.9bdp"}, "a queue of 0.9 bdp"),
        ({"rate": "1Gbit", "limit": "3bdp"}, "a queue of 3 bdp"),
    ],
)
def test_each_dimension_counts(changed, what):
    said = doubt(**changed)
    assert said is not None
    assert what in said


def test_codel_is_in_the_mean_fields_band_and_not_in_the_fluid_models():
    assert "its synchronisation was not compared" in (doubt("meanfield", queue="codel") or "")
    assert "this has codel" in (doubt("fluid", queue="codel") or "")
    assert "bdp, CoDel and PIE; this has fq_codel" in (doubt("meanfield", queue="fq_codel") or "")


@pytest.mark.parametrize(("engine", "limit", "warned"), [("hybrid", 0.2, 1), ("hybrid", 0.5, 0), ("packet", 0.2, 0)])
def test_leaps_over_shallow_buffers(engine, limit, warned):
    plan = ac.loads(line("200Mbit", "pfifo", f"{limit}bdp", 2, "reno", "normal")).plan()
    found = [text for text in guards.warnings([guards.Setting("", plan, engine)]) if "--engine packet" in text]
    assert [text.startswith("The buffer has 0.2 bdp; below 0.5 bdp") for text in found] == [True] * warned


def test_several_queues_are_not_checked():
    several = Path(__file__).parents[2] / "scenarios" / "parking-lot.toml"
    assert guards.model_doubt(ac.load(several).plan(), "fluid") is None


SHARED = f"""
name = "shared"
duration = "3s"
warmup = "1s"
repeats = 2
{dumbbell("10Mbit", "40ms")}
[[flows]]
count = 2
congestion = "cubic"
start = {{ jitter = "500ms" }}
"""


def warned(engine: str = "packet", **values: object) -> list[str]:
    loaded = ac.loads(SHARED).with_({key.replace("__", "."): value for key, value in values.items()})
    return guards.warnings([guards.Setting("", loaded.plan(), engine)])


def test_a_sound_plan_has_no_warnings():
    assert warned() == []


DCTCP = {"flows": [{"count": 2, "congestion": "dctcp"}]}


@pytest.mark.parametrize(
    "queue",
    [
        {"discipline": "pfifo", "limit": "1bdp"},
        {"discipline": "codel"},
        {"discipline": "red", "limit": "1bdp", "ecn": False},
    ],
)
def test_dctcp_behind_a_qdisc_that_does_not_mark(queue):
    (sentence,) = warned(**DCTCP, network__queue=queue)
    assert sentence.startswith(f"The flows with dctcp rely on ECN marks, and the {queue['discipline']} of bottleneck")
    assert ("ecn = true makes it mark" in sentence) == (queue["discipline"] != "pfifo")


MARKING = [
    {"discipline": "codel", "ecn": True},
    {"discipline": "fq_codel"},  # ecn is its default
    {"discipline": "codel", "ce_threshold": "1ms"},
    {"discipline": "dualpi2"},
    {"discipline": "cake"},
]


@pytest.mark.parametrize("queue", MARKING)
def test_hosts_with_ecn_behind_a_qdisc_that_marks(queue):
    assert warned(tcp={"ecn": "classic"}, network__queue=queue) == []


@pytest.mark.parametrize(
    ("queue", "count"), [({"discipline": "codel"}, 1), ({"discipline": "pfifo", "limit": "1bdp"}, 0)]
)
def test_hosts_with_ecn_behind_a_qdisc_that_could_mark(queue, count):
    sentences = warned(tcp={"ecn": "classic"}, network__queue=queue)
    expected = ["The hosts have ECN, and the codel of bottleneck drops where it could mark: ecn = true in its table"]
    assert [sentence.partition(" makes")[0] for sentence in sentences] == expected[:count]


@pytest.mark.parametrize("queue", MARKING)
def test_dctcp_behind_a_qdisc_that_marks(queue):
    assert warned(**DCTCP, network__queue=queue) == []


@pytest.mark.parametrize(
    ("rate", "queue", "count"),
    [
        ("10Mbit", {}, 1),
        ("10Mbit", {"min_qlen_step": "2p"}, 0),
        ("10Mbit", {"step_thresh": "3ms"}, 0),
        ("100Mbit", {}, 0),
    ],
)
def test_a_step_of_dualpi2_that_is_shorter_than_a_packet(rate, queue, count):
    flows = [{"count": 2, "congestion": "prague"}]
    found = warned(flows=flows, network__rate=rate, network__queue={"discipline": "dualpi2", **queue})
    assert len(found) == count
    assert all("less than a packet's transmission of 1.21 ms" in sentence for sentence in found)


@pytest.mark.parametrize(("limit", "count"), [("9p", 1), ("10p", 0), ("0.2bdp", 1), ("1bdp", 0)])
def test_a_limit_below_ten_packets(limit, count):
    found = warned(network__queue={"discipline": "pfifo", "limit": limit})
    assert len(found) == count
    assert all("fewer than the ten of one initial window (RFC 6928)" in sentence for sentence in found)


def test_an_aqm_with_the_limit_of_a_fifo():
    (sentence,) = warned(network__queue={"discipline": "fq_codel", "limit": "1bdp"})
    assert sentence.startswith("The fq_codel of bottleneck has a limit of 33 packets (40.0 ms at the link's rate)")
    assert sentence.endswith("its default, 10,240 packets.")


@pytest.mark.parametrize(
    "queue",
    [
        {"discipline": "fq_codel"},
        {"discipline": "codel", "limit": "4bdp"},  # 158 ms: longer than CoDel's interval
        {"discipline": "pie", "limit": "1000p"},
        {"discipline": "red", "limit": "1bdp"},  # it has no default
        {"discipline": "sfq", "limit": "20p"},  # no AQM: its limit bounds the delay
    ],
)
def test_an_aqm_with_room_to_act(queue):
    assert warned(network__queue=queue) == []


def test_an_aqm_with_the_limit_of_a_fifo_overflows_before_it_acts():
    """With one BDP of room the first burst fills CoDel's queue, which lets more wait if it may."""
    loaded = ac.loads(SHARED)

    def peak(limit: dict[str, str]) -> float:
        data = ac.run(loaded.with_({"network.queue": {"discipline": "codel", **limit}}).plan())
        return data.queue_samples["backlog_p"].max()

    assert peak({"limit": "1bdp"}) == 33
    assert peak({}) > 33


def call(folder: Path, *arguments: str) -> dict[str, object]:
    (folder / "shared.toml").write_text(SHARED)
    command, *options = arguments
    out = ("--out", str(folder / "out"), "--json", "--no-report")
    done = CliRunner().invoke(application, [command, str(folder / "shared.toml"), *options, *out])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


SAME = ("--set", "flows[0].start=0s", "--set", "tcp.processing=0s")


def test_equal_seeds_are_one_run(tmp_path):
    (sentence,) = call(tmp_path, "run", *SAME)["warnings"]
    assert sentence.startswith("All 2 seeds gave the same result: nothing in this scenario is random")


def test_metrics_that_are_equal_do_not_make_random_starts_one_run(tmp_path):
    plan = ac.loads(SHARED).plan()
    full = {"utilisation": 1.0}
    assert guards.equal_seeds(plan, [full, full]) is None
    still = ac.loads(SHARED).with_({"flows[0].start": "0s"}).plan()
    assert guards.equal_seeds(still, [full, full]) is not None


def test_different_seeds_are_not_one_run(tmp_path):
    assert call(tmp_path, "run")["warnings"] == []


def test_a_sweep_names_the_points(tmp_path):
    file = tmp_path / "shared.toml"
    file.write_text(f'{SHARED}[sweep]\n"network.queue.limit" = ["4p", "8p", "1bdp"]\n')
    done = CliRunner().invoke(application, ["sweep", str(file), "--out", str(tmp_path / "out"), "--no-report"])
    text = " ".join(done.stdout.split())
    assert "Warning: network.queue.limit = 4p: The queue of bottleneck has room for 4 packets" in text
    assert text.count("Warning") == 1
    assert "The same at 1 more of 3 settings." in text


def test_a_comparison_of_engines_has_the_warnings_of_its_plan(tmp_path):
    short = ("--set", "network.queue.limit=5p", "--engine", "packet,fluid")
    found = call(tmp_path, "compare", *short)["warnings"]
    assert any(sentence.startswith("The queue of bottleneck has room for 5 packets") for sentence in found)
    assert any(sentence.startswith("fluid: This model was compared with packets") for sentence in found)


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([{"min_group_share": 0.05, "min_share": 0.04}, {"min_group_share": 0.07}], "Starved: the group of flows"),
        ([{"min_group_share": 0.5, "min_share": 0.04}], "Starved: the flow that is worst off gets 4.00 %"),
        ([{"min_group_share": 0.05}, {"min_group_share": 0.5}], None),
        ([{"min_group_share": None}], None),
        ([{}], None),
    ],
)
def test_who_starves_is_a_warning(rows, expected):
    sentence = guards.starvation(ac.loads(SHARED).plan(), rows)
    assert (sentence is None) if expected is None else sentence.startswith(expected)


STARVING = """
name = "small"
duration = "10s"
warmup = "2s"
[network]
topology = "dumbbell"
rate = "50Mbit"
rtt = "30ms"
queue = { discipline = "pfifo", limit = "0.1bdp" }
[[flows]]
congestion = "bbr"
count = 4
[[flows]]
transport = "quic"
congestion = "reno"
count = 2
start = { jitter = "500ms" }
"""


def test_each_command_names_who_starves(tmp_path):
    """BBR of 2016 in a shallow buffer leaves loss-based flows next to nothing (Hock et al. 2017): here QUIC."""
    (tmp_path / "s.toml").write_text(STARVING)

    def warnings(*arguments: str) -> list[str]:
        out = ("--out", str(tmp_path / "-".join(arguments[:2])), "--json", "--no-report")
        found = CliRunner().invoke(application, [arguments[0], str(tmp_path / "s.toml"), *arguments[1:], *out])
        assert found.exit_code == 0, found.output
        return json.loads(found.stdout)["warnings"]

    (sentence,) = warnings("run")
    assert sentence.startswith("Starved: 2 of 2 flows of noq reno got ")
    assert warnings("compare", "--engine", "packet,fluid") == [sentence]
    assert warnings("compare", "--try", "bbr,cubic") == [f"flows[0].congestion = bbr: {sentence}"]


MIXED = """
[[flows]]
count = 2
congestion = "bbr"
start = { jitter = "500ms" }
"""


@pytest.mark.parametrize(("discipline", "starves"), [("pfifo", True), ("fq_codel", False)])
def test_a_run_names_who_starves(discipline, starves, tmp_path):
    """Two BBR flows leave six CUBIC flows next to nothing of a drop-tail queue; fq_codel isolates them."""
    limit = ', limit = "1bdp"' if discipline == "pfifo" else ""
    keys = ("duration=20s", "warmup=5s", "network.rate=50Mbit", "network.rtt=30ms", "flows[0].count=6")
    given = [*keys, f'network.queue={{ discipline = "{discipline}"{limit} }}']
    (tmp_path / "mixed.toml").write_text(SHARED + MIXED)
    options = [word for key in given for word in ("--set", key)]
    place = ("--out", str(tmp_path / "out"), "--json", "--no-report")
    done = CliRunner().invoke(application, ["run", str(tmp_path / "mixed.toml"), *options, *place])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)["warnings"]
    assert [" of cubic got " in sentence for sentence in found] == [True] * starves
