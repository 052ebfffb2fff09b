"""Traffic matrix between hosts: names, globs, patterns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from pydantic_core import InitErrorDetails

from ackclock.input.fields import Loc, closest, fault_at, shown
from ackclock.plan import NodePlan

#: Patterns that are drawn from the run's seed.
DRAWN = ("permutation", "random")


def matching(wanted: str | Sequence[str], hosts: dict[str, int]) -> tuple[int, ...]:
    """The hosts that a name, a glob, or a list of them means, each once."""
    patterns = [wanted] if isinstance(wanted, str) else wanted
    found: dict[int, None] = {}
    for pattern in patterns:
        if pattern in hosts:
            found[hosts[pattern]] = None
        else:
            found |= {number: None for name, number in hosts.items() if fnmatchcase(name, pattern)}
    return tuple(found)


def unmatched(
    wanted: str | Sequence[str], hosts: dict[str, int], nodes: Sequence[NodePlan], place: Loc
) -> Iterator[InitErrorDetails]:
    """Yield faults of names that match no host."""
    if not isinstance(wanted, str) and not wanted:
        yield fault_at(place, wanted, "at least one host")
    for pattern in [wanted] if isinstance(wanted, str) else wanted:
        if not matching(pattern, hosts):
            is_switch = any(node.name == pattern for node in nodes)
            found = f"{shown(pattern)}, which is a switch" if is_switch else shown(pattern)
            yield fault_at(place, pattern, expected_host(pattern, hosts), found)


def expected_host(name: str, hosts: dict[str, int]) -> str:
    """Return the expectation in place of an unknown host: the nearest, or the first and the last."""
    if close := closest(name, tuple(hosts)):
        return f"a host such as {shown(close)}"
    first, last = next(iter(hosts)), next(reversed(hosts))
    return f"a host: {shown(first)} to {shown(last)}, or a pattern such as {shown(first[:1] + '*')}"


def pairs(sources: Sequence[int], destinations: Sequence[int], pattern: str) -> Iterator[tuple[int, int]]:
    """The pairs of a pattern that is not drawn."""
    if pattern == "round-robin":
        yield from zip(sources, destinations, strict=True)
        return
    for source in sources:
        for destination in destinations:
            if source != destination:
                yield source, destination


def unpaired(
    sources: Sequence[int], destinations: Sequence[int], pattern: str, place: Loc
) -> Iterator[InitErrorDetails]:
    """Yield the reasons that make a pattern impossible."""
    place = (*place, "between")
    if pattern in ("round-robin", "permutation") and len(sources) != len(destinations):
        found = f"{shown(pattern)} with {len(sources)} sources and {len(destinations)} destinations"
        yield fault_at(place, pattern, "as many of both", found)
    elif pattern == "round-robin" and any(one == two for one, two in zip(sources, destinations, strict=True)):
        yield fault_at(place, pattern, "lists whose hosts at the same place differ", f"{shown(pattern)} to itself")
    elif pattern == "permutation" and set(sources) == set(destinations) and len(sources) == 1:
        yield fault_at(place, pattern, "two or more hosts", f"{shown(pattern)} of one host")
    elif pattern in ("all", "random") and not any(True for _ in pairs(sources, destinations, "all")):
        yield fault_at(place, pattern, "a source and another destination", "one host with itself")
    elif pattern == "random" and len(set(destinations)) == 1 and destinations[0] in sources:
        yield fault_at(
            place, pattern, "two or more destinations, or one that is no source", f"{shown(pattern)} to itself"
        )
