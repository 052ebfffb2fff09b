"""A capture of our own run says what the run's own tables say."""

from __future__ import annotations

import gzip
import json
import lzma
import struct
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

import ackclock
from ackclock import capture
from ackclock.cli.program import application
from ackclock.dataset import Dataset
from ackclock.dataset.result_kind import Kind, kind
from ackclock.errors import InputError

SCENARIO = """\
name = "two"
duration = "10s"
repeats = 1
[network]
topology = "dumbbell"
rate = "10Mbit"
rtt = ["20ms", "40ms"]
queue = { discipline = "pfifo", limit = "30p" }
[[flows]]
count = 2
congestion = "cubic"
[record]
pcap = true
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("captures")


@pytest.fixture(scope="module")
def run(place):
    plan = ackclock.loads(SCENARIO).plan()
    return ackclock.run(plan, captures=place / "made")


@pytest.fixture(scope="module")
def pcap(run, place):
    (outcome,) = (place / "made").iterdir()
    return outcome


@pytest.fixture(scope="module")
def outcome(pcap):
    return capture.read([pcap])


def call(*arguments, **more):
    return CliRunner().invoke(application, [str(argument) for argument in arguments], **more)


def test_counts_are_those_of_the_run(run, outcome):
    """A capture at the sender sees each transmission; times are rounded to microseconds or better."""
    planned, observed = run.flows.sort("flow"), outcome.data.flows.sort("flow")
    for column in ("sent_packets", "retransmissions", "timeouts", "recoveries", "syn_retransmissions"):
        assert observed[column].to_list() == planned[column].to_list(), column
    np.testing.assert_allclose(observed["established_s"], planned["established_s"], atol=2e-6)


#: Columns of the same packets; the run counts those of the handshake, too.
COUNTED = (("retransmission_rate", 0.001), ("timeouts", 0))


def test_metrics_are_those_of_the_run(run, outcome):
    """Compare what a sender can measure: data count when acknowledged, before a queue's wait they do not."""
    planned, observed = (data.metrics()["summary"] for data in (run, outcome.data))
    for name, bound in (("goodput_bps", 0.02), ("rtt_mean_s", 0.05), ("jain[*]", 0.02), ("cwnd_mean", 0.1), *COUNTED):
        assert observed[name]["mean"] == pytest.approx(planned[name]["mean"], rel=bound), name


def test_each_loss_is_detected(run, outcome):
    """All drops of data but those that the end of the run leaves open."""
    drops = run.events.filter(kind="drop").height
    lost = sum(flow["segments_lost"] for flow in outcome.analysis["flows"])
    assert drops - 10 <= lost <= drops
    assert outcome.analysis["vantage"] == "sender"
    assert outcome.analysis["capture_loss"] == {"packets": 0, "share": 0.0}


def test_the_results_have_the_promised_keys(outcome):
    assert list(outcome.analysis) == [
        "files",
        "vantage",
        "packets",
        "connections",
        "path",
        "capture_loss",
        "clock_steps",
        "flows",
        "udp",
        "summary",
    ]
    flow = outcome.analysis["flows"][0]
    promised = (
        "id client server packets bytes handshake_s goodput_bps rtt_min_s rtt_mean_s segments_lost reordered "
        "not_captured retransmissions limited stalls icmp congestion"
    )
    assert set(promised.split()) <= set(flow)
    assert set(flow["retransmissions"]) == {"fast", "tail_probe", "timeout", "syn", "synack", "spurious", "unknown"}
    assert sum(flow["limited"].values()) == pytest.approx(1.0)


def test_a_filter_and_compression_change_nothing_else(pcap, place, outcome):
    (place / "c.pcap.gz").write_bytes(gzip.compress(pcap.read_bytes()))
    (place / "c.pcap.xz").write_bytes(lzma.compress(pcap.read_bytes()))
    second = outcome.analysis["flows"][1]
    port = second["client"].rsplit(":", 1)[1]
    for path in (pcap, place / "c.pcap.gz", place / "c.pcap.xz"):
        (alone,) = capture.read([path], f"port {port}").analysis["flows"]
        same = {**alone, "id": 1, "flow": second["flow"], "limited": queued(alone)}
        assert same == {**second, "limited": queued(second)}


def queued(flow):
    """Return the limits of a queue, whoever shares it: a filter hides the other flows."""
    limited = dict(flow["limited"])
    shared = limited.pop("shared_bottleneck")
    limited["bottleneck"] += shared
    return {name: round(share, 9) if isinstance(share, float) else share for name, share in limited.items()}


def test_the_command_prints_json_and_writes_a_result_of_its_own_kind(pcap, place):
    out = place / "out"
    done = call("capture", pcap, "--json", "--out", out)
    assert done.exit_code == 0
    assert json.loads(done.stdout) == capture.read([pcap]).analysis
    assert kind(out) is Kind.CAPTURE
    assert Dataset.read(out).manifest["capture"]["connections"] == 2
    (place / "s.toml").write_text(SCENARIO)
    refused = call("run", place / "s.toml", "--no-report", "--out", out)
    assert refused.exit_code == 2
    assert "found the result of captures, which is left alone" in refused.stderr


def test_report_and_plot_read_it(pcap, place):
    out = place / "viewed"
    assert call("capture", pcap, "--out", out).exit_code == 0
    assert call("report", out).exit_code == 0
    assert call("plot", out, "goodput", "--out", place / "goodput.png").exit_code == 0
    assert call("check", out).exit_code == 0


def test_the_doctor_reports_the_verdict_in_sentences_and_by_its_status(pcap):
    done = call("doctor", pcap)
    assert done.exit_code == 10
    assert "Verdict: the network." in done.stdout
    reported = json.loads(call("doctor", pcap, "--json").stdout)
    assert reported["verdict"] == "network"
    assert reported["answers"]["connections"] == 2


def test_the_doctor_reads_what_was_written(run, pcap, place):
    assert call("capture", pcap, "--out", place / "kept").exit_code == 0
    assert call("doctor", place / "kept").stdout == call("doctor", pcap).stdout
    run.write(place / "run")
    refused = call("doctor", place / "run")
    assert refused.exit_code == 2
    assert "found the result of a run; expected the result of captures" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("{pcap}", "--filter", "port htp"), '--filter "port htp": column 6: found "htp"; expected a number'),
        (
            ("{pcap}", "--filter", "tcp and geneve"),
            'column 9: found "geneve", which is not supported; expected a primitive',
        ),
        (("{place}/none.pcap",), "none.pcap: found no such file; expected a capture (pcap or pcapng)"),
        (("{place}",), "found a directory; expected a capture (pcap or pcapng)"),
        (("{place}/s.txt",), "s.txt: found a file that begins with"),
        (("{place}/lfs.pcap",), "lfs.pcap: found a Git LFS pointer instead of the file (`git lfs pull` fetches it)"),
        (("{place}/usb.pcap",), "usb.pcap: found only packets of link type 189 (LINKTYPE_USB_LINUX, USB); expected"),
    ],
)
def test_what_cannot_be_read_is_one_line(pcap, place, arguments, line):
    (place / "s.txt").write_text("no capture")
    (place / "lfs.pcap").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:4d7a2146\nsize 12345\n")
    header = struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 189)
    (place / "usb.pcap").write_bytes(header + struct.pack("<IIII", 1, 0, 4, 4) + bytes(4))
    done = call("capture", *(argument.format(pcap=pcap, place=place) for argument in arguments))
    assert done.exit_code == 2
    assert line in done.stderr
    assert done.stderr.count("\n") == 1


def test_what_is_complete_of_a_file_that_breaks_off_is_reported(pcap, place):
    (place / "cut.pcap").write_bytes(pcap.read_bytes()[:100_001])
    done = call("capture", place / "cut.pcap")
    assert done.exit_code == 0
    assert "2 connections" in done.stdout
    assert "breaks off" in done.stderr
    assert "what is before it is complete" in done.stderr


def packets(pcap):
    """Return the place of each packet's header in a pcap, and its bytes."""
    content, place = pcap.read_bytes(), 24
    while place < len(content):
        length = struct.unpack_from("<I", content, place + 8)[0]
        yield place, content[place + 16 : place + 16 + length]
        place += 16 + length


def test_times_that_no_capture_spans_are_reported(pcap, tmp_path):
    """A packet by a clock that was never set, ten years on."""
    content = bytearray(pcap.read_bytes())
    *_, (place, _) = packets(pcap)
    struct.pack_into("<I", content, place, struct.unpack_from("<I", content, 24)[0] + 10 * 365 * 86_400)
    (tmp_path / "far.pcap").write_bytes(content)
    (note,) = capture.read([tmp_path / "far.pcap"]).notes
    assert note == "1 segment is 4.5 years or more from the first by the clock, and counted as exactly that far"


def test_packets_without_a_time_are_reported(pcap, tmp_path):
    """A pcapng may have blocks that hold nothing but the packet."""
    blocks = [(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)), (1, struct.pack("<HHI", 1, 0, 0))]
    blocks += [(3, struct.pack("<I", len(data)) + data) for _, data in packets(pcap)]
    with (tmp_path / "simple.pcapng").open("wb") as file:
        for kind_of_block, body in blocks:
            padded = body + bytes(-len(body) % 4)
            length = struct.pack("<I", 12 + len(padded))
            file.write(struct.pack("<I", kind_of_block) + length + padded + length)
    (note,) = capture.read([tmp_path / "simple.pcapng"]).notes
    count = len(blocks) - 2
    assert note.endswith(f"{count:,} of {count:,} packets have no time; each takes that of the packet before it")


def test_wrong_arguments_are_reported():
    with pytest.raises(TypeError):
        capture.read(3)
    with pytest.raises(InputError, match=r"a\.pcap: found no such file"):
        capture.read("a.pcap")
    with pytest.raises(InputError):
        capture.read(["a.pcap"], interval_s=-1.0)


def test_synchronisation_is_that_of_the_run(run, outcome):
    """Detected from losses as they passed the sender, which drops precede by the queue's wait."""
    planned, observed = (data.metrics()["summary"]["synchronisation"]["mean"] for data in (run, outcome.data))
    assert planned is not None
    assert observed == pytest.approx(planned, abs=0.05)


def test_figures_of_a_captured_result_are_drawn_by_name(pcap, place):
    out = place / "detailed"
    assert call("capture", pcap, "--segments", "--out", out).exit_code == 0
    done = call("plot", out, "sequence", "--flow", 0, "--between", 1, 2, "--out", place / "s.svg")
    assert done.exit_code == 0
    assert "acknowledged" in (place / "s.svg").read_text()
    assert call("plot", out, "limits", "--out", place / "l.xpl").exit_code == 0
    assert (place / "l.xpl").read_text().startswith("timeval double\n")


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (("sequenc",), 'KIND: found "sequenc"; expected "sequence"'),
        (("sequence", "--flow", 99), "flow: found 99; expected one of 0, 2"),
        (("sequence", "--between", 2, 1), "--between: found 2 s to 1 s; expected two ascending times"),
        (("cwnd", "--flow", 1), '--flow: found "cwnd"; expected one of sequence, pipe'),
        (("cwnd", "--out", "c.xpl"), '--out: found ".xpl" for cwnd; expected .png, .pdf, .svg or .pgf'),
        (("sequence", "--out", "c.txt"), '--out: found ".txt"; expected a file name that ends in .png'),
        (("level",), "the result holds no levels to draw"),
    ],
)
def test_what_cannot_be_drawn_is_one_line(pcap, place, arguments, line):
    out = place / "plain"
    if not out.exists():
        outcome = capture.read([pcap], segments=True)
        replace(outcome.data, parts={**outcome.data.parts, "levels": ()}).write(out)
    done = call("plot", out, *arguments)
    assert done.exit_code == 2
    assert line in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_doctors_page_is_written_with_what_it_reports(pcap, place):
    done = call("doctor", pcap, "--html", place / "why.html")
    assert done.exit_code == 10
    assert f"wrote {place / 'why.html'}" in done.stdout.replace("\n", "")
    assert "<h1>The network</h1>" in (place / "why.html").read_text()
    assert json.loads(call("doctor", pcap, "--json", "--html", place / "why.html").stdout)["verdict"] == "network"


def test_tables_are_printed_for_each_direction_and_rule(pcap):
    done = call("capture", pcap, "--tables")
    assert done.exit_code == 0
    assert "retransmitted packets" in done.stdout
    assert all(rule in done.stdout for rule in ("gap", "first", "per RTT"))
    assert "bottleneck 1 is shared by the flows 0, 2" in done.stdout
    json.loads(call("capture", pcap, "--json", "--tables").stdout)


def test_each_capture_is_read_one_time(tmp_path):
    path = tmp_path / "a.pcap"
    path.write_bytes(b"")
    with pytest.raises(InputError, match="a.pcap twice; expected each once"):
        capture.read([path, path])
    with pytest.raises(InputError, match="found none; expected paths of captures"):
        capture.read([])


def test_the_doctors_page_replaces_pages_only(pcap, place, tmp_path):
    before = pcap.read_bytes()
    for outcome, line in ((pcap, "expected a file name that ends in .html"), (place / "no" / "a.html", "no such dir")):
        done = call("doctor", pcap, "--html", outcome)
        assert (done.exit_code, done.stdout, done.stderr.count("\n")) == (2, "", 1)
        assert line in done.stderr
    assert pcap.read_bytes() == before
    assert call("capture", pcap, "--out", tmp_path / "kept").exit_code == 0
    refused = call("doctor", tmp_path / "kept", "--filter", "port 1")
    assert refused.exit_code == 2
    assert "--filter: found" in refused.stderr


def test_hosts_that_share_a_link_report_its_rate_jointly(outcome):
    """Each flow has addresses of its own, and alone tells nothing of the link's rate; with Ethernet's 18 bytes."""
    path = outcome.analysis["path"]
    assert path["limiter"] == "queue"
    assert path["rate_bps"] == pytest.approx(1518 / 1500 * 10e6, rel=0.02)


def test_a_report_of_a_capture_speaks_of_no_runs_and_no_warm_up(outcome):
    from ackclock.figures import report

    page = report.render([outcome.data])
    assert "Seen once: no intervals." in page
    assert "It was seen once" in page
    assert "The warm-up is shaded" not in page
    assert "This is one run" not in page
