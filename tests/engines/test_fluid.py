"""The fluid engine from Python: what it takes, what its dataset holds, and how results are fed into it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from changed import changed
from polars.testing import assert_frame_equal

import ackclock as ac
from ackclock import capture, engines, metrics
from ackclock.cli import run_jobs
from ackclock.engines import features
from ackclock.engines.engine import RunOptions
from ackclock.engines.fluid import plans
from ackclock.errors import InputError, ScenarioError, UnsupportedError
from ackclock.plan import QueuePlan

TEXT = """
name = "four flows"
duration = "60s"
warmup = "10s"
[network]
topology = "dumbbell"
rate = "120Mbit"
rtt = { from = "40ms", to = "70ms" }
frame_overhead = "0B"
queue = { discipline = "pfifo", limit = "200p" }
[[flows]]
count = 2
congestion = "cubic"
[[flows]]
count = 2
congestion = "reno"
start = { at = "1s", jitter = "1s" }
[record]
interval = "50ms"
"""
TABLES = ("flows", "flow_samples", "queue_samples", "events", "links")


def plan(*changes, text=TEXT):
    return ac.loads(changed(text, *changes), "four.toml").plan()


def fluid(table):
    return ("[record]", f"[fluid]\n{table}\n[record]")


@pytest.fixture(scope="module")
def data():
    return ac.run(plan(), engine="fluid")


def test_the_tables_are_filled(data):
    assert data.flows["congestion"].to_list() == ["cubic", "cubic", "reno", "reno"]
    assert data.flows["base_rtt_s"].to_list() == pytest.approx([0.04, 0.05, 0.06, 0.07])
    assert data.flows["start_s"][:2].to_list() == [0.0, 0.0]
    assert all(1.0 <= start_s < 2.0 for start_s in data.flows["start_s"][2:])
    assert data.links["name"].to_list() == ["bottleneck"]
    assert data.queue_samples.height == 60 / 0.05 + 1
    assert set(data.events["kind"]) == {"drop", "recovery"}
    assert data.packets.height == 0


def test_the_start_is_the_packet_engines(data):
    """The same seed draws the same jitter in both engines."""
    packets = ac.run(replace(plan(), duration_s=3.0, warmup_s=1.0), engine="packet")
    assert packets.flows["start_s"].to_list() == pytest.approx(data.flows["start_s"].to_list(), abs=1e-9)


def test_packets_become_bytes(data):
    """Wire bytes at the link, payload at the receivers: 1500 and 1448 bytes a packet."""
    found = data.metrics()["summary"]
    goodput, throughput = found["goodput_bps"]["mean"], found["throughput_bps"]["mean"]
    assert goodput / throughput == pytest.approx(1448 / 1500, rel=1e-5)
    assert throughput == pytest.approx(120e6 * found["utilisation"]["mean"])
    assert data.flows["delivered_bytes"].sum() == pytest.approx(1448 * int(data.links["departed_total_p"][0]), rel=1e-5)


def test_samples_and_totals_are_one_run(data):
    """The samples add up to the totals."""
    link, samples = data.links.row(0, named=True), data.queue_samples
    measured = samples.filter(samples["time_s"] > 10.0 + 1e-9)
    assert measured["departures_p"].sum() == pytest.approx(link["departed_p"], rel=1e-4)
    assert measured["backlog_p"].mean() == pytest.approx(link["backlog_mean_p"], rel=0.02)
    assert measured["utilisation"].mean() * 50 * 10_000 == pytest.approx(link["departed_p"], rel=1e-3)
    assert sum(link["sojourn_counts"]) == pytest.approx(link["departed_p"], rel=1e-3)
    assert link["sojourn_mean_s"] == pytest.approx(
        np.average(link["sojourn_edges_s"], weights=link["sojourn_counts"]), rel=0.02
    )
    last = data.flow_samples.filter(data.flow_samples["time_s"] == data.flow_samples["time_s"].max())
    assert last["delivered_bytes"].sum() == pytest.approx(data.flows["delivered_bytes"].sum(), rel=1e-3)


def test_every_metric_that_the_tables_allow_exists(data):
    (run,) = data.metrics()["runs"]
    found = run["metrics"]
    known = ("utilisation", "jain[*]", "rtt_mean_s", "queue_delay_p95_s", "queue_empty_share", "loss_rate")
    assert all(found[name] is not None for name in known)
    assert found["congestion_epochs"] > 5
    assert 0.3 <= found["synchronisation"] <= 1
    assert found["losses_per_epoch"] > 1
    assert found["timeouts"] is None


def test_without_samples_the_totals_are_the_same(data):
    bare = engines.engine("fluid").run(plan(), 1, RunOptions(samples=False))
    assert_frame_equal(bare.links, data.links)
    assert_frame_equal(bare.flows, data.flows)
    assert bare.flow_samples.height == bare.queue_samples.height == 0
    (one,), (other,) = bare.metrics()["runs"], data.metrics()["runs"]
    for name in ("utilisation", "jain[*]", "queue_delay_mean_s", "synchronisation", "losses_per_epoch"):
        assert one["metrics"][name] == other["metrics"][name]
    assert one["metrics"]["rtt_mean_s"] == pytest.approx(other["metrics"]["rtt_mean_s"], rel=0.01)
    assert one["metrics"]["cwnd_mean"] == pytest.approx(other["metrics"]["cwnd_mean"], rel=0.01)


def test_many_runs_in_one_call_are_the_runs_one_by_one():
    engine = engines.engine("fluid")
    runs = [(plan(('limit = "200p"', f'limit = "{limit}p"')), seed) for limit in (20, 200) for seed in (1, 2)]
    shares = []
    together = engine.run_many(runs, RunOptions(progress=shares.append), jobs=3)
    assert shares[-1] == 1.0
    for (one, seed), found in zip(runs, together, strict=True):
        alone = engine.run(one, seed)
        for table in TABLES:
            assert_frame_equal(found.frame(table), alone.frame(table))
        assert found.runs[0]["seed"] == seed


def test_what_progress_raises_ends_the_call():
    def enough(share):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        engines.engine("fluid").run(plan(), 1, RunOptions(progress=enough))


@pytest.mark.parametrize(
    ("change", "missing", "others"),
    [
        (('congestion = "reno"', 'congestion = "bbr"'), 'congestion control "bbr"', ("packet", "linux", "ns3")),
        (('discipline = "pfifo"', 'discipline = "fq_codel"'), 'queue discipline "fq_codel"', ("packet", "linux")),
        (('"cubic"', '"cubic"\nsize = "1MB"'), features.FINITE, ("packet", "hybrid", "linux", "ns2", "ns3")),
        (
            ('frame_overhead = "0B"', "loss = { probability = 0.01 }"),
            features.RANDOM_LOSS,
            ("packet", "theory", "linux", "ns2", "ns3"),
        ),
        (('"pfifo", limit = "200p"', '"red", limit = "1bdp", adaptive = true'), "adaptive RED", ("packet", "linux")),
        (('"reno"', '"reno"\ntcp = { mtu = "576B" }'), features.SIZES, ("packet", "linux", "ns2")),
        (('"reno"', '"reno"\ntcp = { processing = "10us" }'), features.PROCESSING, ("packet", "hybrid", "linux")),
    ],
)
def test_unsupported_features_are_rejected_with_the_engines_that_support_them(change, missing, others):
    (reason,) = engines.unsupported(engines.engine("fluid"), plan(change))
    assert (reason.what, reason.engine, reason.available_in) == (missing, "fluid", others)
    with pytest.raises(UnsupportedError):
        engines.engine("fluid").run(plan(change), 1)


def test_the_time_that_hosts_take_by_default_is_left_out():
    assert plan().groups[0].tcp.processing
    assert engines.unsupported(engines.engine("fluid"), plan()) == []


# --- queues ------------------------------------------------------------------------------------------


def test_byte_limits_become_packets():
    found = plans.queue_in_packets(QueuePlan("bfifo", {"limit_bytes": 30_000}), 1500)
    assert found == {"kind": "droptail", "limit_p": 20.0}


# --- options -----------------------------------------------------------------------------------------


def test_the_defaults_of_the_options():
    assert plan().options["fluid"] == {
        "synchronisation": {"kind": "normal", "least": 0.3, "mean": None, "sd": 1.5},
        "loss_assignment": {"kind": "rate"},
        "slow_start": True,
        "cuts": "once",
        "step_s": None,
    }


def test_names_are_short_for_tables():
    found = plan(fluid('synchronisation = "full"\nloss_assignment = "random"\nslow_start = false\nstep = "2ms"'))
    options = found.options["fluid"]
    assert options["synchronisation"] == {"kind": "full"}
    assert options["loss_assignment"] == {"kind": "random"}
    assert (options["slow_start"], options["step_s"]) == (False, 0.002)


@pytest.mark.parametrize(
    ("table", "line"),
    [
        ('synchronisation = "ful"', 'found "ful"; expected "full"'),
        ("synchronisation = 0.3", "found 0.3; expected"),
        ('synchronisation = { kind = "normal", least = 1.5 }', "least: found 1.5; expected at most 1"),
        ('synchronisation = { kind = "replayed" }', "found neither shares nor from; expected one of shares and from"),
        ('loss_assignment = { kind = "replayed", flows = [[0]], from = "x" }', "found both flows and from"),
        ('loss_assignment = "replayed"', 'found "replayed"; expected one of "rate", "window", "random"'),
        ('step = "0s"', 'found "0s"; expected 1us to 1h'),
    ],
)
def test_mistakes_in_the_options_are_one_line(table, line):
    with pytest.raises(ScenarioError) as error:
        plan(fluid(table))
    assert line in str(error.value)


def test_synchronisation_equals_the_setting():
    full = ac.run(plan(fluid('synchronisation = "full"')), engine="fluid")
    epochs = metrics.epochs(full)
    assert epochs.height > 3
    assert set(epochs["flows_hit"]) == {4}
    smooth = ac.run(plan(fluid('synchronisation = "none"')), engine="fluid")
    assert smooth.events.height == 0
    assert smooth.metrics()["summary"]["loss_rate"]["mean"] > 0


# --- replay ------------------------------------------------------------------------------------------


def test_replay_measures_the_epochs(data):
    found = ac.replay(plan(), data, loss_assignment=True).options["fluid"]
    epochs = metrics.epochs(data)
    assert found["synchronisation"]["shares"] == epochs["share"].to_list()
    hit = found["loss_assignment"]["flows"]
    assert [len(flows) for flows in hit] == epochs["flows_hit"].to_list()
    assert {flow for flows in hit for flow in flows} <= {0, 1, 2, 3}


def test_a_part_of_a_result_is_replayed(data):
    found = ac.replay(plan(), data, between=(20.0, 40.0)).options["fluid"]["synchronisation"]["shares"]
    assert found == metrics.epochs(data, (20.0, 40.0))["share"].to_list()
    assert 0 < len(found) < metrics.epochs(data).height


def test_a_capture_is_replayed_with_the_numbers_of_its_connections(tmp_path):
    text = TEXT.replace('"60s"', '"20s"').replace("[record]", "[record]\npcap = true")
    ac.run(ac.loads(text).plan(), captures=tmp_path)
    seen = capture.read([next(tmp_path.iterdir())]).data
    found = ac.replay(plan(), seen, loss_assignment=True).options["fluid"]
    assert found["synchronisation"]["shares"] == metrics.epochs(seen)["share"].to_list()
    assert {flow for flows in found["loss_assignment"]["flows"] for flow in flows} == {0, 1, 2, 3}


def test_a_replayed_run_has_the_synchronisation_of_its_source():
    """Each event hits what the list says, in turn. (The metrics take events within a round trip for one epoch.)"""
    shares = [0.5, 0.25, 1.0]
    table = 'slow_start = false\nsynchronisation = { kind = "replayed", shares = [0.5, 0.25, 1.0] }'
    together = plan(('start = { at = "1s", jitter = "1s" }', ""), fluid(table))
    drops = ac.run(together, engine="fluid").events.filter(pl.col("kind") == "drop")
    found = drops.group_by("time_s", maintain_order=True).len()["len"] / 4
    assert found[:6].to_list() == shares * 2


def test_a_result_folder_is_measured(data, tmp_path):
    folder = data.write(tmp_path / "source")
    named = plan(fluid(f'synchronisation = {{ kind = "replayed", from = "{folder}" }}'))
    with pytest.raises(InputError, match="not measured yet"):
        engines.engine("fluid").run(named, 1)
    followed = ac.run(named, engine="fluid")
    found = followed.manifest["plan"]["options"]["fluid"]
    assert found["synchronisation"]["shares"] == metrics.epochs(data)["share"].to_list()
    assert found["loss_assignment"] == {"kind": "rate"}
    assert_frame_equal(followed.links, ac.run(ac.replay(plan(), data), engine="fluid").links)


def test_a_sweep_measures_a_result_folder(data, tmp_path):
    folder = data.write(tmp_path / "source")
    replayed = f'synchronisation = {{ kind = "replayed", from = "{folder}" }}'
    text = TEXT.replace(*fluid(replayed)) + '[sweep]\n"duration" = ["20s"]\n'
    swept = ac.sweep(ac.loads(text), engine="fluid", out=tmp_path / "swept", jobs=1)
    alone = ac.run(ac.loads(text).point(0).plan, engine="fluid").metrics()["summary"]
    assert swept.points[0]["summary"]["synchronisation"]["mean"] == alone["synchronisation"]["mean"]


def test_a_folder_that_is_no_result_is_rejected(tmp_path):
    named = plan(fluid(f'loss_assignment = {{ kind = "replayed", from = "{tmp_path / "none"}" }}'))
    for refused in (engines.check_inputs, engines.resolve_inputs):
        with pytest.raises(InputError, match=r"fluid\.loss_assignment\.from: found .*none\", which is no result"):
            refused(engines.engine("fluid"), named)
    engines.check_inputs(engines.engine("fluid"), named, [tmp_path / "none"])
    engines.check_inputs(engines.engine("packet"), named)


def test_a_result_without_losses_has_nothing_to_replay():
    idle = ac.run(replace(plan(), duration_s=0.2, warmup_s=0.0), engine="fluid")
    with pytest.raises(InputError, match="no congestion epochs"):
        ac.replay(plan(), idle)


def test_the_command_feeds_one_engine_from_another(tmp_path):
    text = TEXT.replace('"60s"', '"20s"')
    source = tmp_path / "results" / "four-packet"
    path = tmp_path / "four.toml"
    path.write_text(text.replace(*fluid(f'synchronisation = {{ kind = "replayed", from = "{source}" }}')))
    options = run_jobs.Options(engine="packet,fluid", out=tmp_path / "results", report=False)
    made = run_jobs.prepare([path], run_jobs.plans([path], options), options)
    packets, fluids = (job.run(lambda share: None) for job in made)
    shares = metrics.epochs(packets)["share"].to_list()
    assert fluids.manifest["plan"]["options"]["fluid"]["synchronisation"]["shares"] == shares
    early = run_jobs.Options(engine="fluid", out=tmp_path / "other", report=False)
    source.rename(tmp_path / "gone")
    with pytest.raises(InputError, match="which is no result"):
        run_jobs.prepare([path], run_jobs.plans([path], early), early)
