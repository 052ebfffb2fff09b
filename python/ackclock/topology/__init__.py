"""The topologies, one file each: its table of the scenario, and how links and ways come of it."""

from __future__ import annotations

from typing import Annotated, TypeAlias, get_args

from ackclock.keys import Chosen
from ackclock.topology.asymmetric import Asymmetric
from ackclock.topology.dumbbell import Dumbbell
from ackclock.topology.parts import Topology

AnyTopology: TypeAlias = Dumbbell | Asymmetric

#: Name in the scenario → table.
TOPOLOGIES: dict[str, type[Topology]] = {
    get_args(table.model_fields["topology"].annotation)[0]: table for table in get_args(AnyTopology)
}

Network: TypeAlias = Annotated[AnyTopology, Chosen("topology", TOPOLOGIES)]
