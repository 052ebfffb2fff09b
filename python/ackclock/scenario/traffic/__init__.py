"""Who sends what, and when: `[[flows]]` one by one, and the kinds of `[[traffic]]`."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from ackclock.scenario.keys import Chosen, told_apart
from ackclock.scenario.traffic.datagrams import OnOff, Udp
from ackclock.scenario.traffic.generated import Incast, Once, Periodic, Poisson, Sources, Web

AnyTraffic: TypeAlias = Poisson | Periodic | Once | Sources | Web | Incast | Udp | OnOff

#: Kind in the scenario → table.
KINDS = told_apart("kind", AnyTraffic)

Traffic: TypeAlias = Annotated[AnyTraffic, Chosen("kind", KINDS)]
