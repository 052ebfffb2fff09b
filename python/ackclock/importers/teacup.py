"""Import tables of TEACUP (CAIA's reports 150529A and B): of each flow a file of two or three columns.

    TEST_10.0.0.1_5001_10.0.0.2_80_web10g.cwnd      seconds, window in bytes
    TEST_10.0.0.1_5001_10.0.0.2_80_web10g.tcp_rtt   seconds, smoothed RTT in ms, and perhaps an RTT sample in ms
    TEST_10.0.0.1_5001_10.0.0.2_80.psiz             seconds, bytes of a packet that tcpdump saw
    TEST_HOST_web10g.log                            all flows: columns by the names of RFC 4898 in its first line

Tables that SIFTR or TTProbe filled have the same columns. The files of one TEST are a run. Our reading: windows in
bytes are segments of 1448 bytes where web10g's own log does not say the MSS; packets that were seen count as delivered,
with their headers, and a line that is cut off, as a logger that is stopped leaves one, is left out at a file's end.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ackclock.errors import InputError
from ackclock.importers.measurements import UNKNOWN, Flow, FlowSample, Run
from ackclock.importers.text import Text
from ackclock.partial_plan import LONGEST_S
from ackclock.system.files import printable, readable

_TABLE = re.compile(
    r"(?P<test>.+)_(?P<source>[^_]+)_(?P<sport>\d{1,5})_(?P<destination>[^_]+)_(?P<dport>\d{1,5})"
    r"(?:_(?:web10g|siftr|ttprobe))?\.(?P<what>cwnd|tcp_rtt|psiz)"
)
_LOG = re.compile(r"(?P<test>.+)_[^_]+_web10g\.log")

#: Segments of Ethernet with timestamps, where nothing else is known.
MSS_BYTES = 1448

#: Columns of web10g's log that say which connection a line is of.
_ENDS = slice(2, 6)

EXPECTED = "a table of TEACUP, named TEST_SOURCE_PORT_DESTINATION_PORT_web10g.cwnd, .tcp_rtt or .psiz, or web10g.log"

#: A connection of a test: the test, and both ends.
Key = tuple[str, str, str]


@dataclass
class _Series:
    """Series of a connection: time in seconds since 1970 → value."""

    cwnd: dict[float, float] = field(default_factory=dict)
    ssthresh: dict[float, float] = field(default_factory=dict)
    srtt_s: dict[float, float] = field(default_factory=dict)
    delivered_bytes: dict[float, float] = field(default_factory=dict)
    retransmissions: dict[float, float] = field(default_factory=dict)


def recognises(given: Text) -> bool:
    """Return True if the name is one of TEACUP's."""
    return (_TABLE.fullmatch(given.name) or _LOG.fullmatch(given.name)) is not None


def read(files: Sequence[Text]) -> Iterator[Run]:
    """Return a run for each test. Raises `InputError`."""
    connections: dict[Key, _Series] = {}
    for given in files:
        if table := _TABLE.fullmatch(given.name):
            ends = f"{table['source']}:{table['sport']}", f"{table['destination']}:{table['dport']}"
            _take_table(given, table["what"], connections.setdefault((table["test"], *ends), _Series()))
        elif log := _LOG.fullmatch(given.name):
            _take_log(given, log["test"], connections)
        else:
            raise InputError(f"{readable(given.path)}: found another name; expected {EXPECTED}")
    for test in dict.fromkeys(key[0] for key in connections):
        yield _run(test, {key: connection for key, connection in connections.items() if key[0] == test}, files[0])


def _take_table(given: Text, what: str, connection: _Series) -> None:
    total = 0.0
    for number, line in given.lines():
        words = re.split(r"[,\s]+", line.strip())
        if len(words) < 2:
            if line.strip() and number < given.text.count("\n"):
                given.wrong(number, f"{line[:40]!r}", "a time and a value")
            continue
        at_s = given.number(number, words[0], "a time")
        value = given.number(number, words[1], what)
        if what == "cwnd":
            connection.cwnd[at_s] = value / MSS_BYTES
        elif what == "tcp_rtt":
            connection.srtt_s[at_s] = 1e-3 * value
        else:
            total += value
            connection.delivered_bytes[at_s] = total


def _take_log(given: Text, test: str, connections: dict[Key, _Series]) -> None:
    lines = [(number, line.split(",")) for number, line in given.lines() if line.strip()]
    head = next((place for place, (_, words) in enumerate(lines) if words[0].strip() == "Timestamp"), None)
    if head is None:
        given.wrong(1, "no line with the names of the columns", "one that begins with Timestamp")
    names = [name.strip() for name in lines[head][1]]
    for place, (number, words) in enumerate(lines[head + 1 :], head + 1):
        if len(words) != len(names):
            if place < len(lines) - 1:
                given.wrong(number, f"{len(words)} columns", f"{len(names)}, as the first line has")
            continue
        row = {name: word.strip() for name, word in zip(names, words, strict=True)}
        source, sport, destination, dport = (word.strip() for word in words[_ENDS])
        _take_row(
            given, number, row, connections.setdefault((test, f"{source}:{sport}", f"{destination}:{dport}"), _Series())
        )


def _take_row(given: Text, line: int, row: Mapping[str, str], connection: _Series) -> None:
    def number(*names: str) -> float | None:
        name = next((name for name in names if row.get(name)), None)
        return None if name is None else given.number(line, row[name], name)

    at_s = number("Timestamp")
    if at_s is None:
        given.wrong(line, "no time", "one in the column Timestamp")
    mss = number("CurMSS") or MSS_BYTES
    values = (
        (connection.cwnd, number("CurCwnd"), 1 / mss),
        (connection.ssthresh, number("CurSsthresh"), 1 / mss),
        (connection.srtt_s, number("SmoothedRTT"), 1e-3),
        (connection.delivered_bytes, number("HCThruOctetsAcked", "ThruOctetsAcked"), 1.0),
        (connection.retransmissions, number("SegsRetrans"), 1.0),
    )
    for series, value, scale in values:
        if value is not None:
            series[at_s] = scale * value


def _run(test: str, connections: Mapping[Key, _Series], given: Text) -> Run:
    times_s = [
        at_s for connection in connections.values() for series in _series(connection).values() for at_s in series
    ]
    if not times_s:
        given.wrong(1, "no samples", EXPECTED)
    begin_s = min(times_s)
    if max(times_s) - begin_s > LONGEST_S:
        given.wrong(1, f"samples over {max(times_s) - begin_s:.3g} s", f"at most {LONGEST_S:g} s")
    flows = [
        _flow(key, connection, begin_s) for key, connection in connections.items() if any(_series(connection).values())
    ]
    return Run(flows, began_s=begin_s, name=printable(test))


def _flow(key: Key, connection: _Series, begin_s: float) -> Flow:
    series = _series(connection)
    samples = [FlowSample(at_s - begin_s, **values) for at_s, values in _merged(series)]
    retransmitted = list(connection.retransmissions.values())
    return Flow(
        group=UNKNOWN,
        samples=samples,
        source=key[1],
        destination=key[2],
        start_s=samples[0].time_s,
        end_s=samples[-1].time_s,
        base_rtt_s=min(connection.srtt_s.values(), default=None),
        counts={"retransmissions": retransmitted[-1] - retransmitted[0]} if retransmitted else {},
    )


def _merged(series: Mapping[str, Mapping[float, float]]) -> Iterator[tuple[float, dict[str, float | None]]]:
    """Yield all instants; counters have the last value before each."""
    counted = sorted(series["delivered_bytes"].items())
    instants = sorted({at_s for name, connection in series.items() if name != "delivered_bytes" for at_s in connection})
    for at_s in instants or [at_s for at_s, _ in counted]:
        values = {name: connection.get(at_s) for name, connection in series.items() if name != "delivered_bytes"}
        place = bisect_right(counted, (at_s, float("inf")))
        yield at_s, {**values, "delivered_bytes": counted[place - 1][1] if place else 0.0 if counted else None}


def _series(connection: _Series) -> dict[str, dict[float, float]]:
    return {name: getattr(connection, name) for name in ("cwnd", "ssthresh", "srtt_s", "delivered_bytes")}
