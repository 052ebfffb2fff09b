"""Fat trees: the m-port n-tree, built of equal switches whose ports are all used.

X.-Y. Lin, Y.-C. Chung, T.-Y. Huang: A Multiple LID Routing Scheme for Fat-Tree-Based InfiniBand Networks, IPDPS 2004,
section 3; T. Le (2011) section 3.1.1.1. There are 2 (m/2)^n hosts and (2n − 1) (m/2)^(n−1) switches. (Le writes
(m/2)^(n−1) + m^(n−1) switches, which is the same for n = 2 and 3 and too many beyond.)

A switch of level l has a word of n − 1 digits. Those of level 0, the roots, have digits below m/2; those of the other
levels a first digit below m. Switches of the levels l and l + 1 are joined if their words differ at most in digit l.
Host p0 p1 … p(n−1) hangs on the switch of the last level whose word is p0 … p(n−2).
"""

from __future__ import annotations

from itertools import pairwise, product
from typing import Annotated, Literal, TypeAlias

from pydantic import Field, model_validator

from ackclock.input.fields import fault_at, faults, shown
from ackclock.scenario.keys import Delay, LinkRate, Queue
from ackclock.scenario.topology.routed import MAX_NODES, Routed
from ackclock.scenario.topology.wiring import Cable, Wiring

Word: TypeAlias = tuple[int, ...]


class FatTree(Routed):
    """An m-port n-tree."""

    topology: Literal["fat-tree"] = Field(description='a topology: "fat-tree"')
    ports: Annotated[int, Field(ge=2, le=1024)] = Field(description="ports m of each switch, an even number")
    levels: Annotated[int, Field(ge=1, le=16)] = Field(description="levels n of switches")
    rate: LinkRate = Field(description='rate of each link, such as "1Gbit"')
    delay: Delay = Field(description='propagation delay of each link, such as "1us"')
    queue: Queue = Field(description='queue of each port of a switch, such as { discipline = "pfifo", … }')
    host_rate: LinkRate | None = Field(None, description="rate of the hosts' links; absent: the same as the others")

    @model_validator(mode="after")
    def _can_be_built(self) -> FatTree:
        if self.ports % 2:
            raise faults([fault_at(("ports",), self.ports, "an even number")])
        if (nodes := self.hosts + self.switches) > MAX_NODES:
            found = f"{shown(self.ports)} ports and {self.levels} levels, {nodes} nodes"
            raise faults([fault_at(("levels",), self.levels, f"at most {MAX_NODES} nodes", found)])
        return self

    @property
    def hosts(self) -> int:
        """Return the number of hosts."""
        return 2 * int(self._half**self.levels)

    @property
    def switches(self) -> int:
        """Return the number of switches."""
        return (2 * self.levels - 1) * int(self._half ** (self.levels - 1))

    @property
    def _half(self) -> int:
        return self.ports // 2

    def wire(self) -> Wiring:
        """Hosts `h0` … and switches `s0-0` …: the level, 0 being the roots, and the number in it."""
        wiring = Wiring()
        hosts = [wiring.host(f"h{number}") for number in range(self.hosts)]
        levels = [self._level(wiring, level) for level in range(self.levels)]
        for upper, (above, below) in enumerate(pairwise(levels)):
            self._join(wiring, upper, above, below)
        rate_bps = self.host_rate or self.rate
        port = Cable(rate_bps, self.delay, self.queue, ("network", "queue"))
        for number, switch in enumerate(switch for switch in levels[-1].values() for _ in range(self._down)):
            wiring.both_ways(hosts[number], switch, self.card(rate_bps, self.delay), port)
        return wiring

    @property
    def _down(self) -> int:
        """Hosts of a switch of the last level: all its ports if it is a root too."""
        return self.ports if self.levels == 1 else self._half

    def _level(self, wiring: Wiring, level: int) -> dict[Word, int]:
        digits = [range(self._half)] * (self.levels - 1)
        if level > 0:
            digits[0] = range(self.ports)
        return {word: wiring.switch(f"s{level}-{number}") for number, word in enumerate(product(*digits))}

    def _join(self, wiring: Wiring, upper: int, above: dict[Word, int], below: dict[Word, int]) -> None:
        """Words that differ at most in the digit of the upper level's number."""
        port = Cable(self.rate, self.delay, self.queue, ("network", "queue"))
        for word, switch in below.items():
            for digit in range(self._half):
                wiring.both_ways(switch, above[*word[:upper], digit, *word[upper + 1 :]], port)
