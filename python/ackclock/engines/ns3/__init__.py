"""The engine of ns-3.37: the plan as a program in C++, which is compiled and run, and its output as tables.

What ns-3 does otherwise than every other engine here, whatever a plan says:

- A device holds a packet of its own behind the queue discipline, which none can take away: of what may wait, one packet
  waits there, and the discipline has room for one less.
- Its CUBIC has no region that is friendly to Reno (`TcpCubic` in 3.37); controls have the defaults of their classes.
- Its BBR (`TcpBbr`) is close to ours by itself; beside Reno its flows run into timeouts and get less.
- It finds losses by duplicate ACKs and SACK (RFC 6675); there is neither RACK nor a tail loss probe.
- A frame has 2 bytes; the rate makes up for the difference, exactly so for full segments.
- A random loss may take a SYN, too.
- Segments are lost and found by bytes; a delayed ACK waits for its timer from the first segment on.

So a plan that asks for Linux's own TCP is refused, as by `ns2`: `[tcp] stack = "ns2"` with `sack = true` is what both
have. One bottleneck; what lies before and behind it only delays.
Sources: the model library of ns-3.37, chapters on TCP, queue discs and the point-to-point device; its headers.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from ackclock.dataset import Dataset
from ackclock.engines import external, features
from ackclock.engines.engine import Engine, RunOptions, unsupported_features
from ackclock.engines.external import planned_traffic
from ackclock.engines.ns3 import program, settings
from ackclock.errors import Unsupported
from ackclock.plan import Plan

#: The compiler, a header that is there if ns-3 is, and the Debian packages that have them.
COMPILER, HEADER = "g++", Path("/usr/include/ns3/core-module.h")
PACKAGES = "g++ and libns3-dev"

#: Compiler options. The time of a run is spent in ns-3's libraries, not in this program.
OPTIONS = ("-std=c++17", "-O0", "run.cc", "-o", "run", *(f"-lns3-{name}" for name in program.LIBRARIES))

HAS = {
    features.NO_DELAY,
    features.FINITE, features.STOPS, features.STARTS, features.GENERATED, features.UDP, features.RANDOM_LOSS,
    features.CHANGES, features.ECN,
}  # fmt: skip


class Ns3Engine(Engine):
    """ns-3 itself."""

    name = "ns3"
    supported_features = (
        HAS
        | {features.congestion(name) for name in settings.CONTROLS}
        | {features.queue(name) for name in settings.QUEUES}
    )

    def unavailable(self) -> str | None:
        """Compiler and libraries."""
        there = shutil.which(COMPILER) and HEADER.exists()
        return None if there else f"there is no ns-3; Debian has what it needs in the packages {PACKAGES}"

    def unsupported(self, plan: Plan) -> list[Unsupported]:
        """List what ns-3 lacks, or does otherwise."""
        finer = dict.fromkeys((*settings.unsupported(plan), *unsupported(plan), *planned_traffic.unsupported(plan)))
        return unsupported_features(plan, self) + external.reasons(self.name, finer)

    def is_stochastic(self, plan: Plan) -> bool:
        """Traffic may be drawn, and so may losses; some disciplines draw."""
        link = plan.bottleneck_link
        return planned_traffic.is_stochastic(plan) or link.loss is not None or settings.is_stochastic(link.queue)

    def make(self, plan: Plan, seed: int, folder: Path) -> Sequence[Sequence[str]]:
        """Writes the program, which is compiled before it is run."""
        (folder / "run.cc").write_text(program.cpp(plan, seed), encoding="utf-8")
        return [[COMPILER, *OPTIONS], [str(folder / "run")]]

    def run(self, plan: Plan, seed: int, options: RunOptions | None = None) -> Dataset:
        """Run one seed: see `external.carried_out`."""
        return external.carried_out(self, plan, seed, options or RunOptions())


def unsupported(plan: Plan) -> Iterator[str]:
    """Yield what of a plan's network ns-3 does not model."""
    if len(plan.links) > 1:
        yield "several queues"
    if len({group.tcp for group in plan.groups if group.tcp}) > 1:
        yield "TCPs of several kinds"
    if plan.bottleneck_link.frame_overhead_bytes < program.PPP_BYTES:
        yield f"frames of less than {program.PPP_BYTES} B"
    if any(change.up is not None or change.delay_s is not None for change in plan.changes):
        yield "links that fail, or whose delay changes"
    yield from planned_traffic.unsupported_losses(plan)
