"""Phase effects: perturbed runs, what they show, and plans that are known to be prone."""

from __future__ import annotations

import dataclasses
import json

import pytest
from click.testing import CliRunner

import ackclock as ac
from ackclock.cli.program import application
from ackclock.errors import InputError, UnsupportedError
from ackclock.experiments import phase_effects
from ackclock.experiments.sweep import result as sweeps
from ackclock.figures import summary_text
from ackclock.figures.summary_text import HOLDS, NONE_LOCKED, phase_sentence
from ackclock.metrics.protocols import PHASE

BIC = """
name = "BIC"
duration = "{duration}"
warmup = "{warmup}"
repeats = {repeats}
[network]
topology = "dumbbell"
rate = "1Gbit"
rtt = "11.5ms"
access_rate = "100Mbit"
queue = {{ discipline = "pfifo", limit = "935p" }}
[tcp]
{processing}
[[flows]]
count = 12
congestion = "bic"
start = {{ jitter = "1s" }}
"""

#: 24 packets a second, two in ten thousand of the load.
BACKGROUND = """
[[traffic]]
kind = "udp"
rate = "24/s"
packet = "1472B"
"""

#: Two flows whose packets take 10 ms at the bottleneck, and are locked to its clock.
TWO = """
duration = "150s"
warmup = "20s"
repeats = 3
[network]
topology = "dumbbell"
rate = "800kbit"
frame_overhead = "0B"
rtt = ["220ms", "225ms"]
access_rate = "8Mbit"
queue = {{ discipline = "pfifo", limit = "15p" }}
[tcp]
stack = "rfc"
mss = "960B"
delayed_ack = false
receive_window = "31KB"
timestamps = false
processing = {{ distribution = "uniform", from = "0ms", to = "{longest}" }}
[[flows]]
count = 2
congestion = "reno"
start = {{ every = "700ms" }}
"""


#: The default of ns-2, the RFCs and every simulator.
NONE = 'processing = "0s"'


def plan(processing=NONE, more="", **times):
    given = {"duration": "4s", "warmup": "1s", "repeats": 2} | times
    return ac.loads(BIC.format(processing=processing, **given) + more).plan()


def jain(processing, more, **times):
    return ac.run(plan(processing, more, **times)).metrics()["summary"]["jain"]["mean"]


def row(mean, half):
    return {"mean": mean, "ci95_low": mean - half, "ci95_high": mean + half, "n": 5}


@pytest.mark.oracle
def test_with_noise_a_little_background_does_not_make_another_result():
    """The default; without, 24 packets a second move Jain's index from .94 to where it belongs, published as .969."""
    times = {"duration": "60s", "warmup": "10s", "repeats": 5}
    alone, beside = (jain("", more, **times) for more in ("", BACKGROUND))
    assert abs(alone - beside) < 0.02
    assert alone == pytest.approx(0.969, abs=0.02)


def test_who_is_locked_out_by_phase_is_not_with_noise():
    """The short form, after Floyd and Jacobson 1991: a few ms of RTT lock a flow out, in every run alike."""
    alone = ac.run(ac.loads(TWO.format(longest="0ms")).plan())
    noisy = ac.run(ac.loads(TWO.format(longest="20ms")).plan())
    assert all(share < 0.2 for share in second_shares(alone))
    assert all(0.45 < share < 0.65 for share in second_shares(noisy))
    found = phase_effects.compared(alone.metrics()["summary"], noisy.metrics()["summary"])
    assert "jain" in found["moved"]


def second_shares(data):
    """Return the second flow's share of the two flows' total, by run."""
    bits = data.flows["delivered_bytes"].to_list()
    return [second / (first + second) for first, second in zip(bits[::2], bits[1::2], strict=True)]


def test_a_perturbed_run_adds_noise_or_increases_it():
    twin = phase_effects.perturbed(plan())
    assert twin.groups[0].tcp.processing == {"kind": "uniform", "from_s": 0.0, "to_s": 20e-6}
    assert phase_effects.perturbed(twin).groups[0].tcp.processing == {
        "kind": "uniform",
        "from_s": 0.0,
        "to_s": pytest.approx(30e-6),
    }
    assert twin.seeds == plan().seeds
    assert dataclasses.replace(twin, groups=plan().groups) == plan()


def test_real_hosts_have_processing_delay_by_default():
    """The twin of a plan in which they take none is the plan of the default."""
    default = plan("")
    assert phase_effects.prone(default) is None
    assert phase_effects.perturbed(plan()).groups == default.groups


def test_udp_has_no_separate_perturbed_run():
    assert phase_effects.perturbed(plan(more=BACKGROUND)).groups[-1].tcp is None


@pytest.mark.parametrize(
    ("here", "there", "locked"),
    [
        (row(0.92, 0.0003), row(0.97, 0.005), True),
        (row(0.92, 0.03), row(0.97, 0.03), False),  # the intervals meet
        (row(0.969, 0.0003), row(0.972, 0.0003), False),  # surely another, and no matter
        ({"mean": 0.92, "ci95_low": None, "ci95_high": None, "n": 1}, row(0.97, 0.005), False),
        (row(0.0, 0.0), row(0.0, 0.0), False),
    ],
)
def test_a_result_is_phase_locked_if_its_perturbed_run_differs_clearly(here, there, locked):
    nothing = {"mean": None, "ci95_low": None, "ci95_high": None, "n": 0}
    summary = dict.fromkeys(ac.metrics.METRICS, nothing)
    found = phase_effects.compared(summary | {"jain": here}, summary | {"jain": there})
    assert found["locked"] == locked
    assert list(found["moved"]) == (["jain"] if locked else [])


def test_a_locked_result_has_a_message():
    moved = {"jain": {"here": [0.92, 0.919, 0.921], "twin": [0.97, 0.96, 0.98]}}
    told = phase_sentence({"locked": True, "moved": moved})
    assert told.startswith("Phase-locked: ")
    assert "0.920 (0.919 – 0.921) here, 0.970 (0.960 – 0.980) with noise" in told
    assert phase_sentence({"locked": False, "moved": {}}) == HOLDS


def test_a_perturbed_run_is_in_the_manifest_and_among_the_metrics():
    small = plan(duration="1.5s")
    data = phase_effects.checked(ac.run(small), small, "packet")
    assert data.metrics()[PHASE] == data.manifest[PHASE]
    assert set(data.metrics()[PHASE]) == {"locked", "moved"}


def test_a_comparison_checks_the_engines_with_perturbed_runs(tmp_path, monkeypatch):
    (tmp_path / "small.toml").write_text(TWO.format(longest="0ms").replace("150s", "30s"))
    monkeypatch.chdir(tmp_path)
    command = ["compare", "small.toml", "--engine", "packet,fluid", "--perturb", "--no-report", "--out", "out"]
    done = CliRunner().invoke(application, command)
    assert f"\npacket: {HOLDS}\n" in done.stdout, done.output
    assert "\nfluid: " not in done.stdout
    assert json.loads((tmp_path / "out/comparison.json").read_text())[PHASE] == {
        "packet": {"locked": False, "moved": {}}
    }
    assert PHASE in ac.Dataset.read(tmp_path / "out/packet").manifest
    refused = CliRunner().invoke(application, [*command, "--seed", "1"])
    assert (refused.exit_code, refused.stderr.startswith("--perturb: found one run")) == (2, True)


SWEPT = (
    TWO.format(longest="0ms").replace("150s", "30s")
    + """
[sweep]
"network.queue.limit" = ["15p", "30p"]
"""
)


def swept(tmp_path, *words):
    (tmp_path / "small.toml").write_text(SWEPT)
    command = ["sweep", str(tmp_path / "small.toml"), "--perturb", "--out", str(tmp_path / "out"), "--jobs", "1"]
    return CliRunner().invoke(application, [*command, *words])


def test_a_sweep_checks_each_of_its_points(tmp_path):
    done = swept(tmp_path, "--no-report")
    assert done.exit_code == 0, done.output
    assert NONE_LOCKED in done.stdout
    found = sweeps.read(tmp_path / "out")
    assert [point[PHASE] for point in found.points] == [{"locked": False, "moved": {}}] * 2
    twins = sweeps.read(tmp_path / "out-twin")
    twin = phase_effects.perturbed(dataclasses.replace(ac.loads(SWEPT).point(1).plan, seeds=(1,)))
    expected = ac.metrics.table(ac.run(twin))["summary"]["queue_delay_mean_s"]["mean"]
    assert twins.table.filter(point=1, seed=1)["queue_delay_mean_s"].to_list() == [expected]
    assert found.table.filter(point=1, seed=1)["queue_delay_mean_s"].to_list() != [expected]


def test_a_sweep_names_the_points_that_are_locked(tmp_path, monkeypatch):
    moved = {"jain": {"here": [0.92, 0.919, 0.921], "twin": [0.97, 0.96, 0.98]}}
    said_of = iter([{"locked": False, "moved": {}}, {"locked": True, "moved": moved}])
    monkeypatch.setattr(phase_effects, "compared", lambda *_: next(said_of))
    done = swept(tmp_path, "--json")
    assert [point[PHASE]["locked"] for point in json.loads(done.stdout)["points"]] == [False, True]
    (line,) = summary_text.phase_sentences(sweeps.read(tmp_path / "out"))
    assert line.startswith("limit 30p: Phase-locked: noise in the hosts changes the result. Jain")
    assert (
        "limit 30p: Phase-locked: noise in the hosts changes the result." in (tmp_path / "out/report.html").read_text()
    )


def test_a_sweep_continues_with_perturbed_runs(tmp_path):
    assert swept(tmp_path, "--no-report").exit_code == 0
    before = (tmp_path / "out-twin/manifest.json").read_bytes()
    assert swept(tmp_path, "--no-report").exit_code == 0
    assert (tmp_path / "out-twin/manifest.json").read_bytes() == before
    assert PHASE in sweeps.read(tmp_path / "out").manifest


@pytest.mark.parametrize(
    ("words", "refusal"),
    [
        (["--seed", "1"], "found one run; expected two or more"),
        (["--engine", "fluid"], "found --engine fluid; expected packet or linux"),
        (["--shard", "1/2"], "found --shard beside it; expected the whole sweep"),
        (["--metrics", "cwnd_mean"], "found none of the main metrics; expected one of "),
    ],
)
def test_sweeps_that_cannot_be_perturbed_are_rejected(tmp_path, words, refusal):
    done = swept(tmp_path, *words)
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1), done.output
    assert done.stderr.startswith(f"--perturb: {refusal}")
    assert not (tmp_path / "out").exists()


def test_engines_without_perturbed_runs_are_reported():
    with pytest.raises(InputError, match="found --engine fluid,theory; expected packet or linux"):
        phase_effects.having(plan(), ["fluid", "theory"])


def test_one_run_cannot_be_checked():
    with pytest.raises(InputError, match="found one run; expected two or more"):
        phase_effects.check(plan(repeats=1), "packet")


def test_an_engine_without_hosts_cannot_be_checked():
    with pytest.raises(InputError, match="found --engine fluid; expected packet or linux"):
        phase_effects.check(plan(), "fluid")


def test_a_perturbed_run_that_the_kernel_cannot_do_is_rejected():
    exponential = 'processing = { distribution = "exponential", mean = "10us" }'
    with pytest.raises(UnsupportedError, match="whose time for a packet is exponential"):
        phase_effects.check(plan(exponential), "linux")


def test_plans_prone_to_phase_effects_are_detected():
    told = phase_effects.prone(plan())
    assert told
    assert told.startswith("12 greedy flows of one RTT behind links of 100 Mbit/s")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (NONE, ""),
        ('rtt = "11.5ms"', 'rtt = { from = "11.5ms", to = "12ms" }'),
        ('access_rate = "100Mbit"', 'access_rate = "90Mbit"'),
        ('access_rate = "100Mbit"', ""),
        ("count = 12", "count = 1"),
        ("count = 12", 'count = 12\nsize = "1MB"'),
        ('"pfifo", limit = "935p"', '"codel"'),
    ],
)
def test_others_are_not(old, new):
    text = BIC.format(processing=NONE, duration="4s", warmup="1s", repeats=2)
    assert old in text
    assert phase_effects.prone(ac.loads(text.replace(old, new)).plan()) is None
