"""Makes the page of five slow transfers and what `ackclock doctor` says of them.

Three are captures of live hosts in `tests/capture/live`. The engine `linux` runs the two others in its guest and
captures at the senders; a host cannot stall in a guest, whose time stands still with it, so those silences are put into
its capture afterwards (`reproductions/impose.py`). Writes `guides/doctor.md` and a picture for each case; run it when
what doctor says has changed.
"""

from __future__ import annotations

import tempfile
from dataclasses import replace
from io import StringIO
from pathlib import Path

from rich.console import Console

import ackclock as ac
from ackclock.capture import Captured
from ackclock.capture import read as read_capture
from ackclock.capture.diagnosis import diagnose
from ackclock.cli.terminal import capture as terminal
from ackclock.reproductions import impose, pcap

DOCS = Path(__file__).resolve().parent

PAGE = """<!-- Made by docs/make_doctor.py: edit that. -->

# Diagnosing slow transfers

[`ackclock doctor`](captures.md#why-it-was-slow) reads a capture and explains why a transfer was slow. This page shows
its diagnosis of five captures whose causes are known. The first three were taken on live Linux hosts, with a relay
between them that delayed and dropped packets: a receiver that does not read, a server that thinks, and a policer. The
last two come from the Linux guest of the [engine linux](../concepts/linux.md): a host that stalls, and a full queue
(bufferbloat). `docs/make_doctor.py` repeats all of this. With `--html FILE` doctor writes a page with a zoomable figure
of this kind next to each sentence.
"""

#: The last section of the page.
VERDICT = """
## How the verdict is reached

The time of the flows is divided among causes by this evidence:

- **The handshake**: SYNs that were retransmitted, never answered, or answered by a reset. A SYN that was sent once and
  answered late tells of a long path: from 0.5 s on that is the verdict, if nothing else is. ICMP errors say why there
  is no answer: the host refused a port that is unreachable; other reasons are the network's.
- **The capture**: data segments that it lacks although they arrived; a clock that was set back; segments that it
  contains twice (the same IP identification), which are ignored.
- **The receiver**: a window that is closed, or has no room for another segment. A pure ACK that opens the window ends a
  stall of the *receiver*.
- **The sending host**: a machine or process that stood still; or a full send buffer (`SO_SNDBUF`): the data in flight
  has not grown for eight round trips, though nothing was lost, no queue stays and the link has room.
- **The application**, and whose: the pipe runs empty before more is sent, or flights end in a segment that is not full.
  Small segments that wait for delayed ACKs are counted (Nagle's algorithm).
- **The path**: losses, sizes that never arrive (MTU; its number and the router if ICMP reports them), policers and
  shapers, a queue and its rate. Flows share a link only with others in the capture. A queue in front of a link that one
  flow fills is its verdict from three times the shortest round trip on.

The verdict is the cause with the most time, apart from the path at full speed, if that is at least 5 % and a quarter of
the time that the path took at full speed; else nothing stands out. It is the capture if that lacks a tenth of the data
segments that arrived, or if its clock was set back by a tenth of the time or more. It is undecided if all data passed
within one round trip, if no acknowledgements of data were captured, or if stalls of unknown cause, or windows of
unknown scale, took most of the time: without the handshake the window scale is unknown, and round trips in which the
window is full at the smallest scale that holds what was in flight count as undecided.

`benchmarks/scoreboard/live.py` compares verdicts with what was imposed on live kernels.
"""

#: Captures of live hosts, with their origin.
LIVE = DOCS.parent / "tests" / "capture" / "live"

#: Capture → heading, what was imposed, what its picture shows, and the kind of picture.
LIVE_CASES = {
    "rcv-stops-sender": (
        "A receiver that does not read",
        "A download over 50 ms and 10 Mb/s. The receiving program stops reading for four seconds, twice. The capture "
        "was taken at the sender.",
        "The acknowledged data meets the upper line, the right edge of the receiver’s window: there is no room for "
        "another byte until the receiver reads. Where the upper line rises again, the transfer goes on.",
        "sequence",
    ),
    "http-think-sender": (
        "A server that thinks",
        "Eight requests on one connection, over 40 ms and 15 Mb/s. The server waits for 0.6 s or 1.4 s before each "
        "response of 150 kB. The capture was taken at the server.",
        "On each step all data is acknowledged and the window (upper line) has room: nothing is in flight, and nothing "
        "keeps the server from sending.",
        "sequence",
    ),
    "policer-reno-deep-receiver": (
        "A policer",
        "An upload over 80 ms through a policer of 4 Mb/s, with a bucket of 500 kB in front of a link of 40 Mb/s. The "
        "capture was taken at the receiver, behind the policer.",
        "Bytes above the inferred rate. Packets are lost where the level reaches the depth of the bucket.",
        "level",
    ),
}

#: Case → heading, scenario, what is said before and of its picture, and the kind of picture.
GUEST_CASES = {
    "stall": (
        "A host that stalls",
        """\
name = "Four uploads from a host that stalls"
duration = "20s"
repeats = 1

[network]
topology = "dumbbell"
rate = "100Mbit"
rtt = "40ms"
queue = { discipline = "pfifo", limit = "100p" }
access_rate = "5Mbit"
access_queue = { discipline = "pfifo", limit = "20p" }

[[flows]]
count = 4
congestion = "cubic"

[record]
pcap = true
""",
        "Each flow has a separate link. Three times the sending host stalls for two seconds; these stalls were "
        "inserted into the\ncapture afterwards.",
        "The stalls of all flows, and their causes.",
        "stalls",
    ),
    "queue": (
        "A full queue",
        """\
name = "Three uploads through a full queue"
duration = "30s"
repeats = 1

[network]
topology = "dumbbell"
rate = "10Mbit"
rtt = ["20ms", "30ms", "40ms"]
queue = { discipline = "pfifo", limit = "400p" }

[[flows]]
count = 3
congestion = "cubic"

[record]
pcap = true
""",
        "Three flows share a link with a buffer of 400 packets.",
        "The round trips of the flow with the most data.",
        "rtt",
    ),
}

#: When the host stood still, and for how long, in nanoseconds of what is left without the silences before.
STALLS_NS = ((5_000_000_000, 2_000_000_000), (9_000_000_000, 2_000_000_000), (14_000_000_000, 2_000_000_000))

#: Second byte of the guest's addresses → that which the scoreboard knows senders and receivers by.
ENDS = {1: 0, 2: 128}


def main() -> None:
    """Makes the page."""
    text = PAGE
    for name, (heading, before, caption, kind) in LIVE_CASES.items():
        found = read_capture([LIVE / f"{name}.pcap.xz"], segments=True)
        text += section(name, heading, before, f"{name}.pcap.xz", found, (kind, caption))
    with tempfile.TemporaryDirectory() as place:
        for name, (heading, scenario, before, caption, kind) in GUEST_CASES.items():
            found = read_capture([made(Path(place) / name, scenario, stalls=name == "stall")], segments=True)
            made_by = f"{before}\n\n```toml\n{scenario}```"
            text += section(name, heading, made_by, f"{name}.pcap", found, (kind, caption))
    (DOCS / "guides" / "doctor.md").write_text(text + VERDICT, encoding="utf-8")


def section(name: str, heading: str, before: str, file: str, found: Captured, picture: tuple[str, str]) -> str:
    """Write the picture of a case; return its section of the page."""
    kind, caption = picture
    image = f"doctor-{name}.png"
    getattr(ac.plot, kind)(found.data).savefig(DOCS / "assets" / image, dpi=150)
    console = f"```console\n$ ackclock doctor {file}\n{doctor_output(found)}```"
    return f"\n## {heading}\n\n{before}\n\n{console}\n\n![{caption}](../assets/{image})\n\n*{caption}*\n"


def made(place: Path, scenario: str, *, stalls: bool) -> Path:
    """The capture of a scenario in the guest, with stalls of the host or without."""
    ac.run(ac.loads(scenario).plan(), engine="linux", captures=place)
    (capture,) = place.iterdir()
    if stalls:
        records = [with_engine_addresses(record) for record in pcap.read(capture)]
        for at_ns, by_ns in STALLS_NS:
            records = impose.in_order(impose.host(records, at_ns, by_ns))
        pcap.write(capture, records)
    return capture


def with_engine_addresses(record: pcap.Record) -> pcap.Record:
    """With addresses as the packet engine gives them."""
    kept = bytearray(record.kept)
    for place in (27, 31):
        kept[place] = ENDS.get(kept[place], kept[place])
    return replace(record, kept=bytes(kept))


def doctor_output(found: Captured) -> str:
    """Return the output of `ackclock doctor`."""
    into = StringIO()
    terminal.print_diagnosis(found.analysis, diagnose(found.analysis), Console(file=into, width=80, highlight=False))
    return "".join(f"{line.rstrip()}\n" for line in into.getvalue().splitlines())


if __name__ == "__main__":
    main()
