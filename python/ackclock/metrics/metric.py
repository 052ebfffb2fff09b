"""A metric: a name, a unit, a label, and a function of one run."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from ackclock.metrics.view import ALL_FLOWS, RunView

#: A metric's value in one run; None where the engine does not model it or it does not exist.
Value: TypeAlias = "float | list[float] | None"

#: Places of the main metrics: the table of a result or a comparison, the first numbers of a report, the figures
#: of a sweep, the columns of its table.
PLACES = ("table", "card", "chart", "column")


#: Beginnings of names of indexes that may be greater than 1.
UNBOUNDED = ("cov_", "slowdown_")

#: Beginnings of names: of these more is better, of those less; of the others it depends on what is wanted.
MORE = (
    "utilisation",
    "throughput_bps",
    "efficiency",
    "goodput_bps",
    "goodput_down_bps",
    "goodput_flow_bps",
    "goodput_up_bps",
    "jain",
    "min_group_share",
    "min_share",
    "max_min_fairness",
    "udp_goodput_bps",
)
LESS = (
    "breaker_load",
    "fct_",
    "convergence_s",
    "cov_",
    "epsilon_fairness",
    "frame_delay_",
    "freeze",
    "loss_rate",
    "one_way_delay_",
    "queue_delay_",
    "queue_mean_p",
    "responsiveness_s",
    "retransmission_rate",
    "retransmissions",
    "rtt_",
    "sd_goodput_",
    "sends_per_rtt",
    "slowdown_",
    "syn_retransmission_",
    "timeouts",
    "udp_loss_rate",
    "unfinished",
)


#: A metric and a group of flows, `goodput_bps[web]`; `[*]` is all flows. Of links: a bottleneck, `utilisation[up]`.
OF_GROUP = re.compile(r"([^\[\]]+)\[(.+)\]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric; its definition and source are its function's docstring.

    `unit` is `s`, `bit/s`, `packets`, `segments`, `share` (0–1, for people in per cent), `1` (an index) or empty (a
    count); `per_flow` means that the value is a list with an item for each flow. A main metric has `ranks` in the order
    of `PLACES`, the lowest first and 0 where it is not shown, and perhaps a `short` label for a column. One that is
    `of_several` means nothing where one flow is alone. One that is `of_links` looks at links, or at all flows
    together, so it has values for links and none for groups.
    """

    name: str
    unit: str
    label: str
    function: Callable[[RunView], Value]
    per_flow: bool = False
    ranks: tuple[int, ...] = ()
    short: str = ""
    of_several: bool = False
    of_links: bool = False

    def of_group(self, group: str) -> Metric:
        """Return the metric of the flows of one group alone: null in a run without such a group."""

        def function(view: RunView) -> Value:
            chosen = view.of_group(group)
            return None if chosen is None else self.function(chosen)

        function.__doc__ = inspect.getdoc(self.function)
        whose = "all flows" if group == ALL_FLOWS else group
        return replace(
            self, name=f"{self.name}[{group}]", label=f"{self.label}, {whose}", function=function, ranks=(), short=""
        )

    def of_link(self, link: str) -> Metric:
        """Return the metric of one bottleneck alone: null in a run without such a link."""

        def function(view: RunView) -> Value:
            chosen = view.of_link(link)
            return None if chosen is None else self.function(chosen)

        function.__doc__ = inspect.getdoc(self.function)
        return replace(
            self, name=f"{self.name}[{link}]", label=f"{self.label}, {link}", function=function, ranks=(), short=""
        )

    def rank(self, place: str) -> int:
        """Return its place among the main metrics; 0 if it is not shown there."""
        return dict(zip(PLACES, self.ranks, strict=False)).get(place, 0)

    @property
    def better(self) -> Literal["more", "less"] | None:
        """Return whether more or less is better; None where neither is."""
        return "more" if self.name.startswith(MORE) else "less" if self.name.startswith(LESS) else None

    @property
    def maximum(self) -> float:
        """Return the greatest value that the metric can have; the least is 0 for all."""
        return 1.0 if self.unit in ("share", "1") and not self.name.startswith(UNBOUNDED) else float("inf")

    @property
    def definition(self) -> str:
        """Return the definition, one paragraph a block."""
        blocks = (inspect.getdoc(self.function) or "").split("\n\n")
        return "\n\n".join(" ".join(block.split()) for block in blocks)


class Metrics(dict[str, Metric]):
    """Metrics by name. Those of a group (`goodput_bps[web]`) and of a link (`utilisation[up]`) are made when they are
    asked for, and not listed.
    """  # noqa: D205

    def __missing__(self, name: str) -> Metric:
        match = OF_GROUP.fullmatch(name)
        if match is None or not dict.__contains__(self, match[1]):
            raise KeyError(name)
        metric = self[match[1]]
        return metric.of_link(match[2]) if metric.of_links else metric.of_group(match[2])

    def __contains__(self, name: object) -> bool:
        try:
            return self[str(name)] is not None
        except KeyError:
            return False
