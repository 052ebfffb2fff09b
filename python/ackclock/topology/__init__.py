"""The topologies, one file each: its table of the scenario, and how links and ways come of it."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from ackclock.keys import Chosen, told_apart
from ackclock.topology.asymmetric import Asymmetric
from ackclock.topology.dumbbell import Dumbbell
from ackclock.topology.fat_tree import FatTree
from ackclock.topology.graph import Graph
from ackclock.topology.inventec import Inventec
from ackclock.topology.leaf_spine import LeafSpine
from ackclock.topology.parking_lot import ParkingLot
from ackclock.topology.y import Y

AnyTopology: TypeAlias = Dumbbell | Asymmetric | Y | ParkingLot | FatTree | LeafSpine | Inventec | Graph

#: Name in the scenario → table.
TOPOLOGIES = told_apart("topology", AnyTopology)

Network: TypeAlias = Annotated[AnyTopology, Chosen("topology", TOPOLOGIES)]
