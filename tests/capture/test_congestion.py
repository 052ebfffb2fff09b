"""Identification of the CCA of captured flows: ours are named; foreign ones and short flows are unknown."""

from __future__ import annotations

import json

import pytest
from click.testing import CliRunner
from small_networks import dumbbell

import ackclock
from ackclock import _core, capture
from ackclock.capture import congestion
from ackclock.cli.program import application
from ackclock.reproductions import pcap as pcap_files

#: Controls that share a link, the last with a law that no spec has as its default (and which is not, as with β = 0.85,
#: within 5 % of LINCUBIC's); and a transfer without a loss.
SCENARIO = f"""\
name = "which"
duration = "20s"
seeds = [3]
{dumbbell("20Mbit", "40ms")}
[[flows]]
congestion = "cubic"
[[flows]]
congestion = "reno"
[[flows]]
congestion = "bbr"
[[flows]]
congestion = {{ kind = "aimd", increase = 0.3, beta = 0.5 }}
[[flows]]
congestion = "cubic"
size = "5kB"
[record]
pcap = true
"""

TRUE = ["cubic", "reno", "bbr", congestion.UNKNOWN]


@pytest.fixture(scope="module")
def pcap(tmp_path_factory):
    place = tmp_path_factory.mktemp("which")
    ackclock.run(ackclock.loads(SCENARIO).plan(), captures=place)
    (result,) = place.iterdir()
    return result


@pytest.fixture(scope="module")
def result(pcap):
    return capture.read([pcap])


def test_our_own_are_named_and_what_is_foreign_is_unknown(result):
    rankings = [flow["congestion"] for flow in result.analysis["flows"][:4]]
    assert [congestion.word(ranking) for ranking in rankings] == TRUE
    for ranking in rankings:
        assert congestion.UNKNOWN in [one["name"] for one in ranking]
        assert 0.9 < sum(one["probability"] for one in ranking) <= 1.0 + 1e-9
        assert ranking == sorted(ranking, key=lambda one: -one["probability"])
        assert all((one["off"] is None) == (one["name"] == congestion.UNKNOWN) for one in ranking)
    assert all(ranking[0]["off"] < 0.01 for ranking in rankings[:2])  # a replay of what loses by itself alone is exact


def test_of_a_short_flow_nothing_is_reported(result):
    assert result.analysis["flows"][4]["congestion"] is None


def test_the_table_of_flows_has_the_name(result):
    flows = result.data.flows.sort("flow")
    assert flows["congestion"].to_list() == [*TRUE, congestion.UNKNOWN]


def test_the_terminal_shows_it(pcap):
    done = CliRunner().invoke(application, ["capture", str(pcap)])
    assert done.exit_code == 0
    assert sorted(line.split()[-1] for line in done.stdout.splitlines() if "→" in line) == sorted([*TRUE, "–"])


def test_the_file_of_candidates_is_what_their_cards_report():
    assert congestion.CANDIDATES.read_text("utf-8") == congestion.candidates(), "old: python tools/generated_data.py"


def test_every_control_is_a_candidate_with_all_its_parameters():
    reported = json.loads(congestion.CANDIDATES.read_text("utf-8"))
    assert [one["name"] for one in reported] == list(_core.CONGESTION_CONTROLS)
    for one in reported:
        _core.check_congestion(one["name"], json.dumps(one["parameters"]))
    deployed = {one["name"] for one in reported if one["deployed"]}
    assert {"reno", "cubic", "bbr", "dctcp", "compound"} <= deployed
    assert not deployed & {"aimd", "tahoe", "lincubic"}


def test_a_name_that_may_as_well_be_another_is_not_reported():
    ranking = [{"name": "reno", "probability": 0.4}, {"name": "cubic", "probability": 0.35}]
    assert congestion.word(ranking) == congestion.UNKNOWN
    assert congestion.word(None) == congestion.UNKNOWN


def test_what_does_the_same_is_reported_with_the_name(result, pcap):
    reno = result.analysis["flows"][1]["congestion"]
    assert congestion.word(reno) == "reno"
    # Without marks, DCTCP takes Reno's functions.
    assert "dctcp" in congestion.same(reno)
    assert not any("reno" in one["same"] for one in reno)
    assert "reno: indistinguishable from " in CliRunner().invoke(application, ["capture", str(pcap)]).stdout
    assert congestion.same(None) == congestion.same([{"name": "reno", "same": ["dctcp"], "probability": 0.4}]) == ()


def test_the_second_candidate_is_reported_if_it_is_probable():
    ranking = [{"name": name, "probability": p} for name, p in (("cubic", 0.6), ("unknown", 0.2), ("bic", 0.2))]
    assert congestion.second(ranking) == {"name": "bic", "probability": 0.2}
    assert congestion.second([{"name": "cubic", "probability": 0.45}, *ranking[1:]])["name"] == "cubic"
    assert congestion.second(ranking[:2]) is None
    assert congestion.second([*ranking[:2], {"name": "bic", "probability": 0.05}]) is None
    assert congestion.second(None) is None


#: A flow without timestamps whose windows are shorter than a round trip: pauses separate them.
BARE = f"""\
name = "bare"
duration = "30s"
{dumbbell("2Mbit", "60ms", "8p")}
[tcp]
timestamps = false
[[flows]]
congestion = "KIND"
[record]
pcap = ["senders", "receivers"]
"""


@pytest.mark.parametrize("kind", ["reno", "cubic"])
@pytest.mark.parametrize("missing", [1, 2, 40])
def test_a_sender_side_capture_without_the_handshake_identifies_the_cca(kind, missing, tmp_path):
    """From the SYN/ACK on, from the last ACK on, and from the middle of slow start on."""
    ackclock.run(ackclock.loads(BARE.replace("KIND", kind)).plan(), captures=tmp_path)
    (whole,) = tmp_path.glob("*-senders.pcap")
    later = tmp_path / "later.pcap"
    pcap_files.write(later, list(pcap_files.read(whole))[missing:])
    (flow,) = capture.read([later]).analysis["flows"]
    assert flow["vantage"] == "sender"
    assert congestion.word(flow["congestion"]) == kind


def test_a_receiver_side_capture_without_the_handshake_is_not_the_senders(tmp_path):
    ackclock.run(ackclock.loads(BARE.replace("KIND", "reno")).plan(), captures=tmp_path)
    (whole,) = tmp_path.glob("*-receivers.pcap")
    later = tmp_path / "later.pcap"
    pcap_files.write(later, list(pcap_files.read(whole))[40:])
    (flow,) = capture.read([later]).analysis["flows"]
    assert flow["vantage"] != "sender"


def test_what_is_no_candidate_is_rejected(pcap):
    capture = _core.Capture([pcap])
    with pytest.raises(ValueError, match="deployed"):
        capture.congestion('[{"name": "reno", "parameters": {}}]')
