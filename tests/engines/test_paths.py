"""ECN on the path, ACKs that are lost or thinned, misbehaving receivers, traces of delay: plans, outcomes, engines."""

from __future__ import annotations

import polars as pl
import pytest

import ackclock as ac
from ackclock import engines
from ackclock.engines.linux import network
from ackclock.errors import ScenarioError

TEXT = """
duration = "20s"
warmup = "5s"
repeats = 1
[network]
topology = "dumbbell"
rate = "10Mbit"
rtt = "40ms"
queue = { discipline = "codel", ecn = true, limit = "500p" }
KEYS
[[flows]]
congestion = "reno"
tcp = { TCP }
FLOW
"""

REVERSE = 'reverse = { rate = "10Mbit", queue = { discipline = "pfifo", limit = "100p" }, loss = LOSS }'


def text(keys: str = "", flow: str = "", tcp: str = 'ecn = "classic"') -> str:
    return TEXT.replace("KEYS", keys).replace("FLOW", flow).replace("TCP", tcp)


def plan(*args: str, **kwargs: str) -> ac.Plan:
    return ac.loads(text(*args, **kwargs)).plan()


def signals(data: ac.Dataset) -> tuple[int, int]:
    """Return how often the queue marks a packet, and how often the sender reacts."""
    kinds = data.events["kind"].to_list()
    return kinds.count("mark"), kinds.count("mark_reaction")


# ---- ECN on the path ----


def test_the_medium_of_a_plan_has_what_happens_to_ecn():
    made = plan('ecn = "ect1_to_ect0"\ntunnel = "rfc6040"').bottleneck_link.medium
    assert (made.ecn, made.tunnel) == ("ect1_to_ect0", "rfc6040")
    assert plan('ecn = "preserve"').bottleneck_link.medium is None


def test_marks_that_the_path_erases_cause_no_reaction():
    """Marks pass a tunnel by RFC 6040; in its compatibility mode the queue drops instead (section 4.3)."""
    found = {keys: ac.run(plan(keys)) for keys in ("", 'tunnel = "rfc6040"', 'tunnel = "ce_lost"', 'ecn = "bleach"')}
    for keys, data in found.items():
        marks, reactions = signals(data)
        assert marks > 20, keys
        assert (reactions > 0) == (keys in ("", 'tunnel = "rfc6040"')), keys
    hidden = ac.run(plan('tunnel = "compatibility"'))
    assert signals(hidden) == (0, 0)
    assert hidden.links["dropped_total_p"][0] > 5


def test_ecn_is_preserved_from_a_change_on():
    changes = '[[network.changes]]\nat = "10s"\nlink = "bottleneck"\necn = "preserve"\n'
    data = ac.run(plan(f'ecn = "ce_to_ect0"\n{changes}'))
    reactions = data.events.filter(pl.col("kind") == "mark_reaction")["time_s"]
    assert reactions.len() > 0
    assert reactions.min() > 10.0


def test_a_tunnel_does_not_begin_in_a_change():
    with pytest.raises(
        ScenarioError, match=r"network.changes\[0\]: found a tunnel in a change; expected it at the link"
    ):
        plan('[[network.changes]]\nat = "1s"\nlink = "bottleneck"\ntunnel = "ce_lost"\n')


# ---- ACKs ----


def ack_share(loss: str) -> float:
    """The share of the ACKs that the reverse link forwards."""
    links = ac.run(plan(REVERSE.replace("LOSS", loss), tcp="delayed_ack = false")).links
    (link,) = links.filter(pl.col("lost_total_p") > 0).to_dicts()
    return 1 - link["lost_total_p"] / link["arrived_total_p"]


@pytest.mark.parametrize(("loss", "share", "tolerance"), [
    ("{ probability = 0, ack_thinning = 4 }", 0.25, 0.001),
    ("{ probability = 0, ack = 0.3 }", 0.7, 0.02),
    ("{ probability = 0, ack = 0.5, ack_thinning = 2 }", 0.25, 0.02),
])  # fmt: skip
def test_acks_are_lost_and_thinned(loss, share, tolerance):
    """Expect the shares of some 15 000 ACKs: six standard deviations of a share are .02."""
    assert ack_share(loss) == pytest.approx(share, abs=tolerance)


@pytest.mark.parametrize("keys", ["ack = 0.1", "ack_thinning = 2", "every = 5, ack = 0.1"])
def test_loss_of_acks_requires_a_probability(keys):
    with pytest.raises(ScenarioError, match="network.loss: found "):
        plan(f"loss = {{ {keys} }}")


def test_in_the_kernel_short_packets_are_lost_as_acks():
    (loss,) = (link.loss for link in plan("loss = { probability = 0.1, ack = 0.2 }").links if link.loss)
    assert network.loss_of(loss) == network.Loss(0.1, 0.0, 0.2)


# ---- receivers ----


def test_a_misbehaving_receiver_is_complete_in_the_plan():
    (group,) = plan(flow="misbehaviour = { ack_division = 4 }").groups
    rest = {"duplicate_acks": 0, "optimistic_acks": 0, "conceals_losses": False, "conceals_marks": False}
    assert group.misbehaviour == {"ack_division": 4, **rest}
    assert plan(flow="misbehaviour = { ack_division = 1 }").groups[0].misbehaviour is None


def test_divided_acks_gain_nothing_from_a_sender_that_counts_bytes():
    """RFC 3465. In recovery an ACK that comes in two steps moves a packet or two, not the goodput: 2 %."""

    def outcome(tcp: str, flow: str) -> tuple[int, int]:
        data = ac.run(plan("loss = { probability = 0.001 }", flow, tcp))
        return data.flows["delivered_bytes"][0], data.links["dropped_total_p"][0]

    counting, division = "byte_counting = false", "misbehaviour = { ack_division = 8 }"
    (honest, _), (divided, _) = outcome("sack = true", ""), outcome("sack = true", division)
    assert divided == pytest.approx(honest, rel=0.02)
    assert outcome(counting, division)[1] > 2 * outcome(counting, "")[1]


def test_concealed_losses_are_not_delivered():
    data = ac.run(
        plan("loss = { every = 100 }", "misbehaviour = { conceals_losses = true }", 'receive_window = "64KiB"')
    )
    (flow,) = data.flows.to_dicts()
    assert flow["retransmissions"] == 0
    lost = data.links["lost_total_p"][0] + data.links["dropped_total_p"][0]
    missing = flow["sent_packets"] - flow["delivered_bytes"] / 1448
    assert lost == pytest.approx(missing, abs=200)
    assert lost > 100


@pytest.mark.parametrize("key", ["conceals_losses = true", "optimistic_acks = 1"])
def test_without_a_sign_of_loss_the_window_has_a_limit(key):
    with pytest.raises(
        ScenarioError, match=r"flows\[0\].misbehaviour: found an unlimited receive window; expected tcp"
    ):
        plan(flow=f"misbehaviour = {{ {key} }}")


def test_concealed_marks_leave_the_queue_full():
    queued = [
        ac.run(plan(flow=f"misbehaviour = {{ conceals_marks = {word} }}")).links["backlog_mean_p"][0]
        for word in ("false", "true")
    ]
    assert queued[1] > 5 * queued[0]


# ---- traces, and engines ----


def test_a_trace_of_delay_moves_the_round_trip_time(tmp_path):
    """10 ms more in every other second."""
    (tmp_path / "a.csv").write_text("time_s,delay_ms\n0,0\n1,10\n2,\n", encoding="utf-8")
    written = text(tcp='receive_window = "16KiB"').replace('"10Mbit"', '{ trace = "a.csv", rate = "10Mbit" }')
    (tmp_path / "s.toml").write_text(written, encoding="utf-8")
    samples = ac.run(ac.load(tmp_path / "s.toml").plan()).flow_samples
    late = samples.filter(pl.col("time_s") > 5, (pl.col("time_s") % 1).is_between(0.5, 0.9))
    odd = (late["time_s"] // 1) % 2 == 1
    difference_s = late.filter(odd)["srtt_s"].mean() - late.filter(~odd)["srtt_s"].mean()
    assert difference_s == pytest.approx(0.01, abs=0.002)


WHAT = [
    ('ecn = "bleach"', "", "ECN fields that a link rewrites (ecn)"),
    ('tunnel = "rfc6040"', "", "tunnels (tunnel)"),
    ("loss = { probability = 0, ack_thinning = 2 }", "", "thinned ACKs (loss.ack_thinning)"),
    ("", "misbehaviour = { duplicate_acks = 1 }", "misbehaving receivers (misbehaviour)"),
]


@pytest.mark.parametrize("name", ["linux", "fluid", "meanfield", "ns2", "ns3"])
@pytest.mark.parametrize(("keys", "flow", "what"), WHAT)
def test_other_engines_report_them_as_unsupported(name, keys, flow, what):
    reasons = engines.unsupported(engines.engine(name), plan(keys, flow))
    assert any(what in str(reason) for reason in reasons)


def test_a_window_that_counts_acks_is_unsupported_by_the_kernel():
    reasons = engines.unsupported(engines.engine("linux"), plan(tcp="byte_counting = false"))
    assert any("window that grows with the number of ACKs" in str(reason) for reason in reasons)
