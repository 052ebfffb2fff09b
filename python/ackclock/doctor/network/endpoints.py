"""The two hosts: their addresses, the kernel's settings, offloads and queues of the interface that the data take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ackclock.doctor import settings
from ackclock.doctor.network.addresses import Address
from ackclock.doctor.settings import Settings
from ackclock.engines.linux.testbed import facts
from ackclock.engines.linux.testbed.facts import Facts
from ackclock.engines.linux.testbed.layout import RECEIVER, SENDER, Host, Testbed
from ackclock.errors import InputError
from ackclock.hosts.agent import Agent

#: What this host is called: no name that ssh takes.
THIS = "this host"

#: What is changed while the transfers last, where there is root: one transfer shall not know of those before it.
COLD = {"sysctl": "net.ipv4.tcp_no_metrics_save", "value": "1"}

#: The kernel counts processors' time in so many ticks a second (USER_HZ, proc(5)).
TICKS_HZ = 100

#: What it counts, in its order; what of it is work, and what the kernel's own.
TICKS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
WORK = ("user", "nice", "system", "irq", "softirq", "steal")
KERNELS = ("system", "irq", "softirq", "steal")


@dataclass(frozen=True, slots=True)
class Side:
    """A host; `hardware`: the interface that the data take is a device, not one that a kernel made up."""

    name: str
    address: Address
    facts: Facts
    settings: Settings
    hardware: bool

    @property
    def offloads(self) -> list[str]:
        """Those that are on, of the interface that the data take."""
        return self.facts.offloads.get(self.facts.data or "", [])

    def most_bytes(self, name: str) -> int | None:
        """The most that `tcp_rmem` or `tcp_wmem` lets a connection buffer; None if it is not known."""
        words = self.settings.sysctls.get(f"ipv4.{name}", "").split()
        return int(words[2]) if len(words) == 3 else None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        device = self.facts.data
        return {
            "address": self.address.own,
            "seen_as": self.address.seen,
            "root": self.facts.root,
            "interface": device,
            "mtu_bytes": self.facts.interfaces.get(device or "", {}).get("mtu"),
            "offloads": self.offloads,
            "qdisc": self.facts.qdiscs.get(device or "") or None,
            **self.settings.as_dict(),
        }


def look(name: str, agent: Agent, own: Address, other: Address) -> Side:
    """Looks at a host. Raises `HostError`, and `InputError` for one that another run has, or without the address."""
    host, peer = Host(name, "", SENDER, own.own, None, None), Host("", "", RECEIVER, other.seen, None, None)
    found = facts.probe(agent, host, Testbed((host, peer), existing_path=True, rtt_s=None, ssh_config=None))
    if found.taken:
        raise InputError(f'host "{name}": found another run of ackclock at work; expected none')
    if "ip" not in found.missing and found.data is None:
        raise InputError(f'host "{name}": found no interface with the address {own.own}; expected one (--addresses)')
    (device,) = agent.read_files(str(settings.INTERFACES / (found.data or "lo") / "device" / "uevent"))
    return Side(name, own, found, _settings(agent, found), hardware=bool(device))


def make_cold(agent: Agent, side: Side) -> None:
    """Has the kernel forget its peers, until the agent ends. Raises `HostError`."""
    if side.facts.root:
        agent.change([COLD])


@dataclass(frozen=True, slots=True)
class Worked:
    """Of each processor, how long it has worked since the machine began, in seconds: in all, and for the kernel."""

    all_s: tuple[float, ...]
    kernel_s: tuple[float, ...]

    def busy(self, before: Worked, duration_s: float) -> float:
        """The share of the time for which a host had no processor left for its network.

        That is the case if all are busy, or one is with the kernel's work: a connection's packets are one processor's.
        """
        every_s = [after - was for after, was in zip(self.all_s, before.all_s, strict=False)]
        kernel_s = [after - was for after, was in zip(self.kernel_s, before.kernel_s, strict=False)]
        busy_s = max(sum(every_s) / max(1, len(every_s)), max(kernel_s, default=0.0))
        return min(1.0, busy_s / duration_s)


def worked(agent: Agent) -> Worked:
    """What a host's processors have done so far (/proc/stat, proc(5)). Raises `HostError`."""
    (text,) = agent.read_files("/proc/stat")
    lines = [line.split() for line in text.splitlines() if line[:3] == "cpu" and line[3:4].isdigit()]
    ticks = [dict(zip(TICKS, map(int, words[1:]), strict=False)) for words in lines]
    all_s, kernel_s = (
        tuple(sum(of.get(kind, 0) for kind in kinds) / TICKS_HZ for of in ticks) for kinds in (WORK, KERNELS)
    )
    return Worked(all_s, kernel_s)


def _settings(agent: Agent, found: Facts) -> Settings:
    paths = [str(settings.SYSCTLS / name.replace(".", "/")) for name in settings.NAMES]
    speed = str(settings.INTERFACES / (found.data or "lo") / "speed")
    host_name, flags, rate, *values = agent.read_files("/proc/sys/kernel/hostname", "/proc/cpuinfo", speed, *paths)
    sysctls: Mapping[str, str] = {
        name: " ".join(value.split()) for name, value in zip(settings.NAMES, values, strict=True) if value
    }
    interfaces = {found.data: settings.rate_bps(rate)} if found.data else {}
    virtual = settings.is_virtual(flags)
    return Settings(host_name.strip(), found.release, found.cores, virtual, sysctls, interfaces)
