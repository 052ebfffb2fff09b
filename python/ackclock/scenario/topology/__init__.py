"""The topologies, one file each: its table of the scenario, and how links and ways come of it."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from ackclock.scenario.keys import Chosen, told_apart
from ackclock.scenario.topology.asymmetric import Asymmetric
from ackclock.scenario.topology.dumbbell import Dumbbell
from ackclock.scenario.topology.fat_tree import FatTree
from ackclock.scenario.topology.graph import Graph
from ackclock.scenario.topology.inventec import Inventec
from ackclock.scenario.topology.leaf_spine import LeafSpine
from ackclock.scenario.topology.parking_lot import ParkingLot
from ackclock.scenario.topology.y import Y

AnyTopology: TypeAlias = Dumbbell | Asymmetric | Y | ParkingLot | FatTree | LeafSpine | Inventec | Graph

#: Name in the scenario → table.
TOPOLOGIES = told_apart("topology", AnyTopology)

Network: TypeAlias = Annotated[AnyTopology, Chosen("topology", TOPOLOGIES)]
