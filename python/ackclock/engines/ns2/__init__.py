"""The engine of ns-2 2.35, with which most older studies of TCP were made: the plan as a script, its output as tables.

What ns-2 does otherwise than every other engine here, whatever a plan says:

- Its TCP is one-way: no handshake and no FIN; a first packet of headers alone stands for a SYN (`syn_`), and a
  transfer's last packet is as long as all others.
- A random loss may take that first packet, too, where other engines spare SYNs.
- Segments are counted, not bytes. RTTs are rounded to ticks (`tcpTick_`), so timeouts are whole ticks.
- RED never drops a packet early that finds the queue empty, or a single packet where it counts packets
  (`spare_empty`), whatever a plan says.
- `Agent/TCP/Linux` (Wei and Cao 2006) runs the congestion controls of Linux 2.6.22: CUBIC has no HyStart there, and
  counts its time in ticks of 1 ms.
- In a recovery a sender of SACKs sends as its *pipe* lets it (`Agent/TCP/Sack1`, Fall and Floyd 1996); there is neither
  RACK nor a tail loss probe nor proportional rate reduction.

So a plan that asks for Linux's own TCP is refused; `[tcp] stack = "ns2"` is what ns-2 has.
Sources: the ns Manual; `tcl/lib/ns-default.tcl` and `tcp/` of ns-2.35 for names and defaults.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from ackclock.dataset import Dataset
from ackclock.engines import external, features
from ackclock.engines.engine import Engine, RunOptions, unsupported_features
from ackclock.engines.external import planned_traffic
from ackclock.engines.ns2 import script, settings
from ackclock.errors import Unsupported
from ackclock.plan import Plan

#: The program, and the Debian package that has it.
PROGRAM, PACKAGE = "ns", "ns2"

HAS = {
    features.NO_DELAY,
    features.FINITE, features.STOPS, features.STARTS, features.GENERATED, features.UDP, features.SEVERAL_LINKS,
    features.REVERSE, features.RANDOM_LOSS, features.CHANGES, features.ECN, features.SIZES, features.ROUTED,
    features.PATHS,
}  # fmt: skip


class Ns2Engine(Engine):
    """ns-2 itself."""

    name = "ns2"
    supported_features = (
        HAS
        | {features.congestion(name) for name in settings.CONTROLS}
        | {features.queue(name) for name in settings.DISCIPLINES}
    )

    def unavailable(self) -> str | None:
        """The program."""
        return None if shutil.which(PROGRAM) else f"there is no ns-2; Debian has it as the package {PACKAGE}"

    def unsupported(self, plan: Plan) -> list[Unsupported]:
        """List what ns-2 lacks, or does otherwise."""
        finer = dict.fromkeys(unsupported(plan))
        return unsupported_features(plan, self) + external.reasons(self.name, finer)

    def is_stochastic(self, plan: Plan) -> bool:
        """Traffic may be drawn, and so may losses; RED draws."""
        return planned_traffic.is_stochastic(plan) or any(
            link.loss or settings.is_stochastic(link) for link in plan.links
        )

    def make(self, plan: Plan, seed: int, folder: Path) -> Sequence[Sequence[str]]:
        """Writes the script."""
        (folder / "run.tcl").write_text(script.tcl(plan, seed), encoding="utf-8")
        return [[PROGRAM, "run.tcl"]]

    def run(self, plan: Plan, seed: int, options: RunOptions | None = None) -> Dataset:
        """Run one seed: see `external.carried_out`."""
        return external.carried_out(self, plan, seed, options or RunOptions())


def unsupported(plan: Plan) -> Iterator[str]:
    """Yield the details of a plan that ns-2 lacks or does otherwise, apart from whole features."""
    for room in (script, settings):
        yield from room.unsupported(plan)
