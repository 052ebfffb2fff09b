"""The topologies, one file each: its table of the scenario, and how links and ways come of it."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from ackclock.keys import Chosen, told_apart
from ackclock.topology.asymmetric import Asymmetric
from ackclock.topology.dumbbell import Dumbbell

AnyTopology: TypeAlias = Dumbbell | Asymmetric

#: Name in the scenario → table.
TOPOLOGIES = told_apart("topology", AnyTopology)

Network: TypeAlias = Annotated[AnyTopology, Chosen("topology", TOPOLOGIES)]
