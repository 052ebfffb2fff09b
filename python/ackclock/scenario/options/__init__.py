"""Options of one engine: the tables `[theory]`, `[fluid]`, `[meanfield]` and `[linux]` of a scenario.

The network, its traffic and its algorithms are said once for all engines; here is what only a model has, such as how
its flows lose in step. An engine reads its own complete values from `Plan.options`.
"""

from __future__ import annotations

from collections.abc import Mapping

from ackclock.scenario.options.fluid import Fluid
from ackclock.scenario.options.linux import Linux
from ackclock.scenario.options.meanfield import MeanField
from ackclock.scenario.options.options import Options
from ackclock.scenario.options.theory import Theory

__all__ = ["OPTIONS", "Fluid", "Linux", "MeanField", "Options", "Theory"]

#: Engine → its table.
OPTIONS: Mapping[str, type[Options]] = {"theory": Theory, "fluid": Fluid, "meanfield": MeanField, "linux": Linux}
