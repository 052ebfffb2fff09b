"""The topologies, one file each: its table of the scenario, and how links and ways come of it.

A scenario has one of them, and the others' files are not imported.
"""

from __future__ import annotations

from typing import Annotated, TypeAlias

from ackclock.input.tagged_union import Chosen
from ackclock.scenario.keys import Tables
from ackclock.scenario.topology.topology import Topology

#: Name in the scenario → table.
TOPOLOGIES = Tables(
    __name__,
    {
        "dumbbell": ("dumbbell", "Dumbbell"),
        "asymmetric": ("asymmetric", "Asymmetric"),
        "y": ("y", "Y"),
        "parking-lot": ("parking_lot", "ParkingLot"),
        "fat-tree": ("fat_tree", "FatTree"),
        "leaf-spine": ("leaf_spine", "LeafSpine"),
        "inventec": ("inventec", "Inventec"),
        "graph": ("graph", "Graph"),
        "testbed": ("testbed", "Testbed"),
    },
)

Network: TypeAlias = Annotated[Topology, Chosen("topology", TOPOLOGIES)]
