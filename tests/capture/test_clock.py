"""Logs of a host's clock: both forms, what they explain, and what is refused."""

from __future__ import annotations

import json
import struct

import numpy as np
import pytest
from click.testing import CliRunner

from ackclock.capture import clock
from ackclock.cli.program import application
from ackclock.dataset import Dataset
from ackclock.dataset.tables import CLOCK_GAPS
from ackclock.errors import InputError

TABLE = """\
start_s,wall_s,duration_s,class,cpu
7.0,1000.0,0,,
8.5,1001.5,0.5,steal,3
9.0,1002.0,2.0,pause,0
20.0,1013.0,0.0,,
"""


def log(tmp_path, text: str) -> clock.ClockLog:
    path = tmp_path / "clock.log"
    path.write_text(text)
    return clock.read(path)


def test_a_table_of_gaps(tmp_path):
    result = log(tmp_path, TABLE)
    assert (result.first_s, result.last_s) == (1000.0, 1013.0)
    assert result.begin_s.tolist() == [1001.5, 1002.0]
    assert [CLOCK_GAPS[code] for code in result.classes] == ["steal", "pause"]
    assert result.within(np.array([1001.75]), np.array([1003.0])).tolist() == [1.25]


@pytest.mark.parametrize("tail", ["", " up 3 days", ",0.12", ";x"])
def test_a_line_a_second(tmp_path, tail):
    times_s = [1000.0, 1001.001, 1002.08, 1004.9, 1005.9]
    result = log(tmp_path, "".join(f"{time_s:.3f}{tail}\n" for time_s in times_s))
    assert (result.first_s, result.last_s) == (1000.0, 1005.9)
    assert list(zip(result.begin_s, result.end_s, strict=True)) == [(1002.08, 1004.9)]


def test_a_gap_explains_the_stalls_of_which_it_takes_more_than_half(tmp_path):
    begin_s = np.array([1001.9, 1000.0, 1003.5, 1002.0])
    which, kinds, sure = log(tmp_path, TABLE).explains(begin_s, np.array([2.0, 1.0, 5.0, 0.4]))
    assert which.tolist() == [0, 3]
    assert [CLOCK_GAPS[code] for code in kinds] == ["pause", "pause"]
    assert sure.tolist() == pytest.approx([0.99, 0.99])


def test_a_clock_that_was_set_back_is_followed(tmp_path):
    result = log(tmp_path, "wall_s,duration_s,class\n100,0.5,step\n90,2,stop\n95,0,\n")
    assert (result.begin_s.tolist(), result.first_s, result.last_s) == ([90.0, 100.0], 90.0, 100.5)


def test_gaps_that_overlap_count_one_time(tmp_path):
    result = log(tmp_path, "wall_s,duration_s,class\n10,5,stop\n11,1,steal\n14,2,step\n")
    assert result.within(np.array([0.0]), np.array([100.0])).tolist() == [6.0]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("", "found a file that is no table; expected a log of a host's clock"),
        ("wall_s,duration_s\n1,2\n", "found no column class; expected a log"),
        ("wall_s,duration_s,class\n", "found no rows"),
        ("wall_s,duration_s,class\n1,2,nap\n", "clock.log:2: class: found nap; expected one of scheduler, steal,"),
        ("wall_s,duration_s,class\n1,2,stop\n1,x,stop\n", "clock.log:3: found x; expected duration_s, in seconds"),
        ("1.0\n2.0\nthree\n", "clock.log:3: found three; expected the seconds since 1970"),
        ("hello\n", "found no column wall_s"),
        ("wall_s,duration_s,class\n1,-2,stop\n", "clock.log:2: duration_s: found -2; expected more than 0 and at most"),
        ("wall_s,duration_s,class\n1,0,stop\n", "clock.log:2: duration_s: found 0; expected more than 0 and at most"),
        ("wall_s,duration_s,class\n1,0,\n2,1e30,stop\n", "clock.log:3: duration_s: found 1e30; expected more than 0"),
        ("wall_s,duration_s,class\n1e30,1,stop\n", "clock.log:2: wall_s: found 1e+30; expected seconds since 1970"),
        ("wall_s,duration_s,class\n-1,1,stop\n", "clock.log:2: wall_s: found -1; expected seconds since 1970"),
        (
            "wall_s,duration_s,class\n9,1,stop\n8,1,stop\n",
            "clock.log:3: wall_s: found 8.000 s behind 9.000 s; expected",
        ),
        ("1.0\n2.0\n1.5\n", "clock.log:3: the seconds since 1970: found 1.500 s behind 2.000 s; expected rows in"),
        ("1.0\n1e30\n", "clock.log:2: the seconds since 1970: found 1e+30; expected seconds since 1970"),
    ],
)
def test_what_is_no_log_is_one_line(tmp_path, text, line):
    with pytest.raises(InputError) as refused:
        log(tmp_path, text)
    assert line in str(refused.value)
    assert "\n" not in str(refused.value)


def capture(path, silence_s: float) -> None:
    """A client that sends a segment each 20 ms, answered at once; its host stops after a second. Without timestamps."""
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101))
        for number in range(100):
            time_s = 1_000_000 + 0.02 * number + (silence_s if number >= 50 else 0.0)
            for answer in (False, True):
                payload = b"" if answer else bytes(100)
                ends = ((bytes([10, 0, 0, 1]), 40_000), (bytes([10, 0, 0, 2]), 80))
                (source, port), (target, to) = reversed(ends) if answer else ends
                numbers = (1, 101 + 100 * number) if answer else (1 + 100 * number, 1)
                ip = struct.pack(">BBHHHBBH", 0x45, 0, 40 + len(payload), number, 0, 64, 6, 0) + source + target
                tcp = struct.pack(">HHIIBBHHH", port, to, *numbers, 0x50, 0x10, 60_000, 0, 0)
                packet = ip + tcp + payload
                at_s, at_us = divmod(round(1e6 * (time_s + 0.005 * answer)), 1_000_000)
                file.write(struct.pack("<IIII", at_s, at_us, len(packet), len(packet)) + packet)


def call(*arguments):
    return CliRunner().invoke(application, [str(argument) for argument in arguments])


def test_the_log_reports_why_nothing_was_sent(tmp_path):
    capture(tmp_path / "a.pcap", 5.0)
    (tmp_path / "clock.csv").write_text("wall_s,duration_s,class\n1000001.0,5.0,steal\n")
    plain = json.loads(call("capture", tmp_path / "a.pcap", "--json").stdout)
    assert [stall["class"] for stall in plain["flows"][0]["stalls"]] == ["application"]
    done = call(
        "capture", tmp_path / "a.pcap", "--clock-log", tmp_path / "clock.csv", "--json", "--out", tmp_path / "out"
    )
    (stall,) = json.loads(done.stdout)["flows"][0]["stalls"]
    assert stall["class"] == "steal"
    stalls = Dataset.read(tmp_path / "out").scan("stalls").collect()
    assert stalls["confidence"].item() > 0.95
    reported = call("doctor", tmp_path / "a.pcap", "--clock-log", tmp_path / "clock.csv")
    assert reported.exit_code == 11
    assert "the host's log says that its hypervisor ran other guests" in " ".join(reported.stdout.split())
    refused = call("doctor", tmp_path / "out", "--clock-log", tmp_path / "clock.csv")
    assert refused.exit_code == 2
    assert "--clock-log: found" in refused.stderr


def test_a_log_of_another_time_is_one_line(tmp_path):
    capture(tmp_path / "a.pcap", 0.5)
    (tmp_path / "clock.csv").write_text("wall_s,duration_s,class\n2000001.0,1.5,steal\n")
    done = call("capture", tmp_path / "a.pcap", "--clock-log", tmp_path / "clock.csv")
    assert done.exit_code == 2
    assert done.stderr.count("\n") == 1
    assert "expected one of the capture's time, 1000000.000 s to 1000002.485 s" in done.stderr
