"""Several captures of the same connections: at both ends of real hosts, with other clocks, and in rotated files."""

from __future__ import annotations

import json
import lzma
import struct
from pathlib import Path

import pytest
from click.testing import CliRunner

from ackclock import capture
from ackclock.capture import vantage_points
from ackclock.capture.agreement import Point, compare
from ackclock.capture.findings import Cause, Finding
from ackclock.capture.vantage_points import SeveralVantagePointsError
from ackclock.cli.program import application

LIVE = Path(__file__).parent / "live"
SENDER, RECEIVER = (LIVE / f"app-lossy-trickle-{end}.pcap.xz" for end in ("sender", "receiver"))


def call(*arguments):
    return CliRunner().invoke(application, [str(argument) for argument in arguments])


def halves(path, folder, later_s=0):
    """Split a capture into two files, as tcpdump rotates them, its clock ahead by some seconds."""
    content, place, records = lzma.decompress(path.read_bytes()), 24, []
    while place < len(content):
        seconds, fraction, kept, length = struct.unpack_from("<IIII", content, place)
        header = struct.pack("<IIII", seconds + later_s, fraction, kept, length)
        records.append(header + content[place + 16 : place + 16 + kept])
        place += 16 + kept
    half, files = len(records) // 2, []
    for number, part in enumerate((records[:half], records[half:])):
        files.append(folder / f"{path.name.partition('.')[0]}{number}.pcap")
        files[-1].write_bytes(content[:24] + b"".join(part))
    return files


def test_both_ends_of_a_transfer_have_a_diagnosis_each_and_agree():
    done = call("doctor", SENDER, RECEIVER, "--json")
    told = json.loads(done.stdout)
    assert done.exit_code == Cause.APPLICATION.exit_status
    assert (told["verdict"], told["agree"]) == ("application", True)
    alone = [capture.summarise(path).analysis for path in (SENDER, RECEIVER)]
    assert [point["answers"] for point in told["vantage_points"]] == alone
    shown = call("doctor", SENDER, RECEIVER)
    assert "The vantage points agree: the application." in shown.stdout
    assert shown.stdout.count("Verdict:") == 2


def test_capture_analyses_each_vantage_point_and_writes_no_merged_result(tmp_path):
    told = json.loads(call("capture", SENDER, RECEIVER, "--json").stdout)
    assert [point["vantage"] for point in told["vantage_points"]] == ["sender", "receiver"]
    refused = call("capture", SENDER, RECEIVER, "--out", tmp_path / "out")
    assert (refused.exit_code, refused.stderr.count("\n")) == (2, 1)
    assert "found captures of 2 vantage points" in refused.stderr
    assert not (tmp_path / "out").exists()
    assert call("doctor", SENDER, RECEIVER, "--html", tmp_path / "a.html").exit_code == 2


def test_rotated_files_of_one_vantage_point_are_merged(tmp_path):
    merged = capture.summarise(halves(SENDER, tmp_path)).analysis
    alone = capture.summarise(SENDER).analysis
    assert (merged["flows"], merged["path"]) == (alone["flows"], alone["path"])


def test_rotated_files_of_two_vantage_points_form_two_groups_despite_their_clocks(tmp_path):
    first, second = halves(SENDER, tmp_path), halves(RECEIVER, tmp_path, later_s=86_400)
    with pytest.raises(SeveralVantagePointsError) as error:
        capture.summarise([*first, *second])
    assert error.value.groups == [first, second]


def test_captures_of_acks_have_two_vantage_points(tmp_path):
    acks = "less 80 and src port 5001"
    first, second = halves(SENDER, tmp_path), halves(RECEIVER, tmp_path, later_s=86_400)
    assert vantage_points.groups([*first, *second], acks) == [first, second]


def test_unknown_losses_are_no_difference():
    sentence = compare([point("a", Cause.NETWORK, lost=7), point("b", Cause.HOST, lost=None)]).sentence
    assert "Segments lost" not in sentence


def test_captures_of_other_connections_are_merged():
    other = LIVE / "rcv-stops-sender.pcap.xz"
    assert vantage_points.groups([SENDER, other]) == [[SENDER, other]]
    assert capture.summarise([SENDER, other]).analysis["connections"] == 2


class Diagnosed:
    """A diagnosis with a verdict and one finding."""

    def __init__(self, verdict, sentence=""):
        self.verdict = verdict
        self.findings = (Finding(verdict, sentence, {}),) if sentence else ()


def point(name, verdict, sentence="", *, size=1000, lost=0):
    analysis = {"flows": [{"bytes": size, "segments_lost": lost}], "capture_loss": {"share": 0.0}}
    return Point([Path(name)], analysis, Diagnosed(verdict, sentence))


def test_an_open_verdict_leaves_it_to_the_other_vantage_point():
    network, undecided = point("a", Cause.NETWORK), point("b", Cause.UNDECIDED, "All data passed at once.")
    agreement = compare([network, undecided])
    assert (agreement.verdict, agreement.agree) == (Cause.NETWORK, False)
    assert agreement.sentence == "The network, by a alone: b is undecided. All data passed at once."


def test_vantage_points_that_differ_are_undecided_for_a_reason():
    agreement = compare([point("a", Cause.NETWORK, size=2000, lost=7), point("b", Cause.HOST, size=500)])
    assert (agreement.verdict, agreement.agree) == (Cause.UNDECIDED, False)
    assert agreement.sentence == (
        "The vantage points do not agree (a: the network; b: the host). They do not have the same data: a has 2.00 kB, "
        "b has 500 bytes. Segments lost: 7 by a, 0 by b."
    )
