"""The two hosts: their addresses, kernel settings, and the offloads and queues of the data's interface."""

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
class Endpoint:
    """A host; `hardware` is set when the data's interface is a physical device."""

    name: str
    address: Address
    facts: Facts
    settings: Settings
    hardware: bool

    @property
    def offloads(self) -> list[str]:
        """Return the enabled offloads of the data's interface."""
        return self.facts.offloads.get(self.facts.data or "", [])

    def max_bytes(self, name: str) -> int | None:
        """The most that `tcp_rmem` or `tcp_wmem` lets a connection buffer; None if it is not known."""
        fields = self.settings.sysctls.get(f"ipv4.{name}", "").split()
        return int(fields[2]) if len(fields) == 3 else None

    def as_dict(self) -> dict[str, Any]:
        """Return the JSON object."""
        device = self.facts.data
        return {
            "address": self.address.own,
            "seen_as": self.address.public,
            "root": self.facts.root,
            "interface": device,
            "mtu_bytes": self.facts.interfaces.get(device or "", {}).get("mtu"),
            "offloads": self.offloads,
            "qdisc": self.facts.qdiscs.get(device or "") or None,
            **self.settings.as_dict(),
        }


def inspect(name: str, agent: Agent, own: Address, other: Address) -> Endpoint:
    """Inspect a host. Raises `HostError`, and `InputError` for a busy host or one without the address."""
    host, peer = Host(name, "", SENDER, own.own, None, None), Host("", "", RECEIVER, other.public, None, None)
    facts_of_host = facts.look(agent, host, Testbed((host, peer), existing_path=True, rtt_s=None, ssh_config=None))
    if facts_of_host.taken:
        raise InputError(f'host "{name}": found another run of ackclock at work; expected none')
    if "ip" not in facts_of_host.lacks and facts_of_host.data is None:
        raise InputError(f'host "{name}": found no interface with the address {own.own}; expected one (--data)')
    (device,) = agent.read(str(settings.INTERFACES / (facts_of_host.data or "lo") / "device" / "uevent"))
    return Endpoint(name, own, facts_of_host, _settings(agent, facts_of_host), hardware=bool(device))


def make_cold(agent: Agent, side: Endpoint) -> None:
    """Make the kernel forget its peers' metrics until the agent ends. Raises `HostError`."""
    if side.facts.root:
        agent.change([COLD])


@dataclass(frozen=True, slots=True)
class CpuTime:
    """Seconds that each processor has worked since boot: in all, and in the kernel."""

    all_s: tuple[float, ...]
    kernel_s: tuple[float, ...]

    def busy(self, before: CpuTime, duration_s: float) -> float:
        """Return the share of the time for which a host had no processor left for its network.

        That is the case if all are busy, or one is with the kernel's work: a connection's packets are one processor's.
        """
        every_s = [after - earlier for after, earlier in zip(self.all_s, before.all_s, strict=False)]
        kernel_s = [after - earlier for after, earlier in zip(self.kernel_s, before.kernel_s, strict=False)]
        busy_s = max(sum(every_s) / max(1, len(every_s)), max(kernel_s, default=0.0))
        return min(1.0, busy_s / duration_s)


def read_cpu_time(agent: Agent) -> CpuTime:
    """Read the processors' times of a host (/proc/stat, proc(5)). Raises `HostError`."""
    (text,) = agent.read("/proc/stat")
    lines = [line.split() for line in text.splitlines() if line[:3] == "cpu" and line[3:4].isdigit()]
    ticks = [dict(zip(TICKS, map(int, fields[1:]), strict=False)) for fields in lines]
    all_s, kernel_s = (
        tuple(sum(of.get(kind, 0) for kind in kinds) / TICKS_HZ for of in ticks) for kinds in (WORK, KERNELS)
    )
    return CpuTime(all_s, kernel_s)


def _settings(agent: Agent, facts_of_host: Facts) -> Settings:
    paths = [str(settings.SYSCTLS / name.replace(".", "/")) for name in settings.NAMES]
    speed = str(settings.INTERFACES / (facts_of_host.data or "lo") / "speed")
    host_name, flags, rate, *values = agent.read("/proc/sys/kernel/hostname", "/proc/cpuinfo", speed, *paths)
    sysctls: Mapping[str, str] = {
        name: " ".join(value.split()) for name, value in zip(settings.NAMES, values, strict=True) if value
    }
    interfaces = {facts_of_host.data: settings.rate_bps(rate)} if facts_of_host.data else {}
    virtual = settings.is_virtual(flags)
    return Settings(host_name.strip(), facts_of_host.release, facts_of_host.cores, virtual, sysctls, interfaces)
