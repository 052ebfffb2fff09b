"""CPU cost of congestion control algorithms and AQMs: the packet engine's CPU time relative to `reno` over `pfifo`.

Every algorithm of the catalog runs the same workload, with the defaults of its spec: 20 flows, 1 Gb/s, 20 ms, 10 s.
CPU seconds are compared, start-up apart, per data packet that arrived; repeats are interleaved, and ratios compare the
least disturbed repeat of each. An algorithm that loses more, or paces, has more to do for each packet: that is part of
its cost here.

    python benchmarks/algorithms.py [--quick] [--repeats N]
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from typing import Any

from run import Bench, Cost, Workload, build_ackclock, verdict

from ackclock import algorithms

#: At most so many times the cost of `reno`, and of `pfifo`.
REQUIRED_CONTROL, REQUIRED_FQ_CODEL = 1.10, 1.5
#: The buffer: one BDP, as the workload's own pfifo has it.
LIMIT_BYTES, LIMIT_PACKETS = 2_500_000, 1666


@dataclass(frozen=True, slots=True)
class Algorithm(Workload):
    """The workload with another congestion control or queue."""

    congestion: str = ""
    queue: str = ""

    def arguments(self, program: str, share: float) -> list[str]:
        """Return the workload's arguments, with the algorithms in JSON."""
        return [
            *super(Algorithm, self).arguments(program, share),
            self.congestion,
            *([self.queue] if self.queue else []),
        ]


def workload(name: str, congestion: str, queue: str = "") -> Algorithm:
    """20 flows, 1 Gb/s, 20 ms, 10 s."""
    return Algorithm(name, 20, 1e9, 0.02, 10.0, congestion=congestion, queue=queue)


def plan_json(spec: algorithms.AlgorithmSpec) -> str:
    """An algorithm as a plan has it: the spec's defaults, and a buffer of one BDP."""
    limit = LIMIT_BYTES if "limit" in spec.parameters and spec.parameters["limit"].kind == "bytes" else LIMIT_PACKETS
    values = spec.complete({"limit": limit} if "limit" in spec.parameters else {})
    parameters = {spec.key(name): plain(spec.parameters[name].kind, value) for name, value in values.items()}
    return json.dumps({algorithms.NAME_KEYS[spec.family]: spec.name, "parameters": parameters})


def plain(kind: str, value: Any) -> Any:
    """Sizes as whole numbers."""
    number = getattr(value, "value", value)
    return int(number) if kind in ("bytes", "packets") and number is not None else number


def main() -> int:
    """Measure, print, and say with the exit status whether the requirements hold."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--quick", action="store_true", help="three repeats of each")
    parser.add_argument("--repeats", type=int, help="runs of each (default 9)")
    options = parser.parse_args()
    bench = Bench({"ackclock": [str(build_ackclock())]}, options.repeats or (3 if options.quick else 9))
    reno = plan_json(algorithms.spec("congestion", "reno"))
    controls = [
        workload(name, plan_json(algorithms.spec("congestion", name))) for name in algorithms.names("congestion")
    ]
    queues = [workload(name, reno, plan_json(algorithms.spec("queue", name))) for name in algorithms.names("queue")]
    held = compared(bench, "Congestion controls beside reno", controls, "reno")
    held += compared(bench, "Queue disciplines beside pfifo", queues, "pfifo")
    return int(not all(held))


def compared(bench: Bench, title: str, workloads: list[Algorithm], base: str) -> list[bool]:
    """Prints each algorithm's cost beside that of `base`; whether each holds its requirement."""
    print(f"\n{title}")
    costs = bench.measure([*workloads], ["ackclock"])
    reference = next(cost for cost in costs if cost.workload.name == base)
    return [one(cost, reference) for cost in costs]


def one(cost: Cost, reference: Cost) -> bool:
    """One algorithm's line."""
    ratio = cost.packet_ns / reference.packet_ns
    name, run = cost.workload.name, cost.runs[0]
    limit = {"reno": REQUIRED_CONTROL, "pfifo": REQUIRED_FQ_CODEL if name == "fq_codel" else None}
    required = limit[reference.workload.name]
    told = f"{name:<12}{cost.packet_ns:7.1f} ns, utilisation {run.utilisation:.3f}"
    return verdict(told, f"{ratio:.2f} ×", required, ratio, "<=")


if __name__ == "__main__":
    sys.exit(main())
