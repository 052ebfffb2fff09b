"""The topologies: the table of each in the scenario, and how links and ways come of it.

A scenario has one of them, and the files of others are not imported.
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
        "dumbbell": "dumbbell:Dumbbell",
        "asymmetric": "asymmetric:Asymmetric",
        "y": "multi_bottleneck:Y",
        "parking-lot": "multi_bottleneck:ParkingLot",
        "fat-tree": "data_centres:FatTree",
        "leaf-spine": "data_centres:LeafSpine",
        "inventec": "data_centres:Inventec",
        "graph": "graph:Graph",
        "testbed": "testbed:Testbed",
    },
)

Network: TypeAlias = Annotated[Topology, Chosen("topology", TOPOLOGIES)]
