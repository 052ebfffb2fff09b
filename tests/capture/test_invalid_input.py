"""Errors before the work is done, and messages on odd names and captures without data: one line each."""

from __future__ import annotations

import os
import struct

import pytest
from click.testing import CliRunner

from ackclock import capture, metrics
from ackclock.cli.program import application
from ackclock.figures.capture_figures import stalls


def write(path, count: int = 4) -> None:
    """SYNs that nobody answers."""
    with path.open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101))
        for number in range(count):
            ip = struct.pack(">BBHHHBBH", 0x45, 0, 40, number, 0, 64, 6, 0) + bytes([10, 0, 0, 1, 10, 0, 0, 2])
            tcp = struct.pack(">HHIIBBHHH", 40_000 + number, 80, 7, 0, 0x50, 0x02, 60_000, 0, 0)
            file.write(struct.pack("<IIII", 1_000_000 + number, 0, 40, 40) + ip + tcp)


def call(*arguments):
    return CliRunner().invoke(application, [str(argument) for argument in arguments])


@pytest.fixture
def unread(tmp_path, monkeypatch):
    """A capture that nobody may look at."""
    write(tmp_path / "a.pcap")

    def read(*_, **__):
        raise AssertionError("analysed before the place of the result was looked at")

    monkeypatch.setattr(capture, "read", read)
    return tmp_path / "a.pcap"


def one_line(done) -> str:
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_a_place_that_is_something_else_is_rejected_before_the_analysis(unread, tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.txt").write_text("x")
    assert "which is left alone" in one_line(call("capture", unread, "--out", tmp_path / "notes"))
    assert "cannot be written" in one_line(call("capture", unread, "--out", unread / "in-a-file"))
    (tmp_path / "page.html").mkdir()
    assert "no regular file" in one_line(call("doctor", unread, "--html", tmp_path / "page.html"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_place_that_cannot_be_written_is_rejected_before_the_analysis(unread, tmp_path):
    (tmp_path / "shut").mkdir(mode=0o500)
    assert "cannot be written" in one_line(call("capture", unread, "--out", tmp_path / "shut" / "out"))


def test_a_name_with_a_line_break_is_one_line(tmp_path):
    odd = tmp_path / "two\nlines.pcap"
    assert "two?lines.pcap: found no such file" in one_line(call("capture", odd))
    write(odd)
    with odd.open("ab") as file:
        file.write(b"cut")
    done = call("capture", odd, "--out", tmp_path / "o\nut")
    assert done.exit_code == 0
    assert done.stderr.count("\n") == 1
    assert "o?ut" in done.stdout.replace("\n", "")
    assert "two\\nlines" not in done.stderr
    assert r"--filter \"a\nb\"" in one_line(call("capture", odd, "--filter", "a\nb")).replace('"', r"\"")


def test_without_data_present_are_no_stalls_to_draw(tmp_path):
    write(tmp_path / "a.pcap")
    assert call("capture", tmp_path / "a.pcap", "--out", tmp_path / "out").exit_code == 0
    line = one_line(call("plot", tmp_path / "out", "stalls", "--out", tmp_path / "s.svg"))
    assert "the result holds no flows with data to draw" in line
    assert not (tmp_path / "s.svg").exists()
    assert call("report", tmp_path / "out").exit_code == 0


def test_application_stalls_need_a_pending_request(tmp_path):
    """A request, acknowledged at once; the answer comes two seconds later."""
    client, server = (bytes([10, 0, 0, 1]), 40_000), (bytes([10, 0, 0, 2]), 80)
    sent = [
        (0.00, client, server, (1, 1), b"", 0x02),
        (0.01, server, client, (1, 2), b"", 0x12),
        (0.02, client, server, (2, 2), bytes(200), 0x10),
        (0.03, server, client, (2, 202), b"", 0x10),
        (2.03, server, client, (2, 202), bytes(1000), 0x10),
        (2.04, client, server, (202, 1002), b"", 0x10),
    ]
    with (tmp_path / "a.pcap").open("wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 101))
        for time_s, (source, port), (target, to), numbers, payload, flags in sent:
            ip = struct.pack(">BBHHHBBH", 0x45, 0, 40 + len(payload), 7, 0, 64, 6, 0) + source + target
            packet = ip + struct.pack(">HHIIBBHHH", port, to, *numbers, 0x50, flags, 60_000, 0, 0) + payload
            at_s, at_us = divmod(round(1e6 * time_s), 1_000_000)
            file.write(struct.pack("<IIII", 1_000_000 + at_s, at_us, len(packet), len(packet)) + packet)
    data = capture.read([tmp_path / "a.pcap"]).data
    view = next(iter(metrics.runs(data)))
    assert stalls(view).panels[0].y.ticks == ((0, "flow 1"),)
    assert stalls(view, flow=0).panels[0].y.ticks == ((0, "flow 0"),)
    (stall,) = data.scan("stalls").collect().iter_rows(named=True)
    assert (stall["class"], stall["flow"], round(stall["duration_s"], 2)) == ("application", 1, 2.0)
