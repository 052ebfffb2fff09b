"""Settings of this host that limit transfers: sysctls of TCP, queues and offloads of interfaces; what a finding is."""

from __future__ import annotations

import math
import os
import platform
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ackclock.figures import numbers

#: Folders of the kernel's settings.
SYSCTLS, INTERFACES = Path("/proc/sys/net"), Path("/sys/class/net")

#: Settings that are read.
NAMES = (
    "ipv4.tcp_congestion_control",
    "core.default_qdisc",
    "ipv4.tcp_rmem",
    "ipv4.tcp_wmem",
    "ipv4.tcp_window_scaling",
    "ipv4.tcp_sack",
    "ipv4.tcp_timestamps",
    "ipv4.tcp_ecn",
    "ipv4.tcp_moderate_rcvbuf",
    "ipv4.tcp_slow_start_after_idle",
    "ipv4.tcp_no_metrics_save",
    "ipv4.tcp_mtu_probing",
    "ipv4.tcp_recovery",
    "ipv4.tcp_early_retrans",
)

#: Switches that cost speed when they are off, and what for.
SWITCHES: Mapping[str, str] = {
    "ipv4.tcp_window_scaling": "no connection has more than 64 KiB under way",
    "ipv4.tcp_sack": "of several losses in one round trip, one is repaired in each",
    "ipv4.tcp_timestamps": "round trips are measured once a window, and spurious repairs are not noticed",
    "ipv4.tcp_moderate_rcvbuf": "receive buffers do not grow with the path",
}

#: Buffers, and what goes through them; what makes repeated measurements unlike.
BUFFERS = {"ipv4.tcp_rmem": "received", "ipv4.tcp_wmem": "sent"}
MEMORY = "ipv4.tcp_no_metrics_save"

#: RTT in seconds for which buffers are sized if none is given.
LONG_S = 0.1

#: Buffer per bandwidth-delay product. Linux advertises about half of a receive buffer as window: the rest is the
#: overhead of its packets (ip-sysctl, tcp_adv_win_scale). It lets a send buffer grow to twice the congestion window
#: (`tcp_sndbuf_expand`), so that the application can write while a window is in flight.
BUFFER_BDP = 2

#: Rate that is taken where the kernel tells none, in bit/s.
DEFAULT_BPS = 1e9


@dataclass(frozen=True, slots=True)
class Finding:
    """A sentence with its evidence and advice; `bad` if it limits transfers or captures."""

    part: str
    sentence: str
    evidence: Mapping[str, Any]
    next: str = ""
    bad: bool = False

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        return {
            "part": self.part,
            "bad": self.bad,
            "sentence": self.sentence,
            "evidence": dict(self.evidence),
            "next": self.next,
        }


@dataclass(frozen=True, slots=True)
class Settings:
    """Kernel settings; rates in bit/s, null where the kernel does not expose one."""

    name: str
    kernel: str
    processors: int
    virtual_machine: bool
    sysctls: Mapping[str, str]
    interfaces: Mapping[str, float | None]

    @property
    def fastest_bps(self) -> float:
        """Return the fastest interface's rate; 1 Gb/s if none is exposed."""
        return max((rate for rate in self.interfaces.values() if rate), default=DEFAULT_BPS)

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        return asdict(self)


def read() -> Settings:
    """Read the settings of this host."""
    return Settings(
        platform.node(),
        platform.release(),
        os.cpu_count() or 1,
        is_virtual(_text(Path("/proc/cpuinfo"))),
        {name: value for name in NAMES if (value := " ".join(_text(SYSCTLS / name.replace(".", "/")).split()))},
        {path.name: rate_bps(_text(path / "speed")) for path in sorted(_folders(INTERFACES)) if path.name != "lo"},
    )


def findings(host: Settings, rate_bps: float | None = None, rtt_s: float | None = None) -> Iterator[Finding]:
    """Yield the settings that limit transfers; of a given path also that the socket buffers suffice.

    Args:
        host: the settings.
        rate_bps: the rate of the path; None: the fastest interface's.
        rtt_s: its RTT; None: a long one, which makes small buffers advice and no fault.
    """
    yield from _switches(host)
    for name, ends in BUFFERS.items():
        yield from _buffer(host, name, ends, rate_bps or host.fastest_bps, rtt_s)
    if host.sysctls.get(MEMORY) == "0":
        sentence = "The kernel caches the slow-start threshold and RTT of each peer: repeated measurements differ."
        yield Finding("settings", sentence, {f"net.{MEMORY}": 0}, f"sysctl -w net.{MEMORY}=1 while measuring.")


def _switches(host: Settings) -> Iterator[Finding]:
    for name, cost in SWITCHES.items():
        if host.sysctls.get(name) == "0":
            advice = f"sysctl -w net.{name}=1"
            yield Finding("settings", f"net.{name} is off: {cost}.", {f"net.{name}": 0}, advice, bad=True)


def _buffer(host: Settings, name: str, ends: str, rate_bps: float, rtt_s: float | None) -> Iterator[Finding]:
    """Yield whether the largest buffer of a connection holds what a path needs."""
    words = host.sysctls.get(name, "").split()
    if len(words) != 3:
        return
    path_s, max_bytes = rtt_s or LONG_S, int(words[2])
    bdp_bytes = rate_bps * path_s / 8
    required_bytes = math.ceil(BUFFER_BDP * bdp_bytes)
    evidence = {f"net.{name}": max_bytes, "bdp_bytes": bdp_bytes, "needed_bytes": required_bytes}
    size, rtt = numbers.value(max_bytes, "bytes"), numbers.value(path_s, "s")
    if max_bytes < required_bytes:
        limit = numbers.value(8 * max_bytes / BUFFER_BDP / path_s, "bit/s")
        sentence = f"With net.{name} of {size} no connection gets more than about {limit} {ends} over an RTT of {rtt}."
        wanted = "" if rtt_s else " if long paths matter"
        advice = f'sysctl -w net.{name}="{words[0]} {words[1]} {required_bytes}"{wanted}: {BUFFER_BDP} BDP.'
        yield Finding("settings", sentence, evidence, advice, bad=rtt_s is not None)
    elif rtt_s:
        rate = numbers.value(rate_bps, "bit/s")
        sentence = f"net.{name} of {size} is enough for a connection with {rate} {ends} over an RTT of {rtt}."
        yield Finding("settings", sentence, evidence)


def is_virtual(cpuinfo: str) -> bool:
    """Return True if the text of /proc/cpuinfo is a virtual machine's."""
    return re.search(r"^flags\s*:.*\bhypervisor\b", cpuinfo, re.MULTILINE) is not None


def rate_bps(speed: str) -> float | None:
    """Return the rate of an interface from its file `speed` (Mb/s); None where it is not exposed."""
    try:
        megabits = int(speed or -1)
    except ValueError:
        return None
    return 1e6 * megabits if megabits > 0 else None


def _folders(path: Path) -> list[Path]:
    try:
        return list(path.iterdir())
    except OSError:
        return []


def _text(path: Path) -> str:
    """Return a file's text, empty if it cannot be read."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return ""
