"""Over which links data goes between two hosts of a graph: one of the shortest ways, as routing finds them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence

from ackclock.plan import LinkPlan, NodePlan

#: A way, as indexes of links.
Way = tuple[int, ...]


class Ways:
    """The shortest ways of a graph; those to one node are searched for once."""

    def __init__(self, nodes: Sequence[NodePlan], links: Sequence[LinkPlan]) -> None:
        self._hosts = [node.host for node in nodes]
        self._ends = [link.ends for link in links]
        self._into: list[list[int]] = [[] for _ in nodes]
        self._out: list[list[int]] = [[] for _ in nodes]
        for number, link in enumerate(links):
            if link.ends is not None:
                self._into[link.ends.destination].append(number)
                self._out[link.ends.source].append(number)
        self._hops: dict[int, list[int]] = {}

    def between(self, source: int, destination: int, which: int) -> Way:
        """One way; `which` chooses at each node among those that are equally short. Empty if there is none."""
        return tuple(self._links(source, destination, which))

    def _links(self, node: int, destination: int, which: int) -> Iterator[int]:
        hops = self._hops.get(destination) or self._hops.setdefault(destination, self._search(destination))
        while hops[node] > 0:
            nearer = [link for link in self._out[node] if hops[self._end(link)] == hops[node] - 1]
            link = nearer[which % len(nearer)]
            which = which // len(nearer) + which
            node = self._end(link)
            yield link

    def _search(self, destination: int) -> list[int]:
        """Return the number of links from each node; −1 if unreachable."""
        hops = [-1] * len(self._hosts)
        hops[destination] = 0
        waiting = deque([destination])
        while waiting:
            node = waiting.popleft()
            for link in self._into[node]:
                ends = self._ends[link]
                if ends is not None and hops[ends.source] < 0:
                    hops[ends.source] = hops[node] + 1
                    if not self._hosts[ends.source]:
                        waiting.append(ends.source)
        return hops

    def _end(self, link: int) -> int:
        ends = self._ends[link]
        assert ends is not None
        return ends.destination
