"""Traffic: `[[flows]]` one by one, and the kinds of `[[traffic]]`.

The files of the kinds are imported when a scenario has one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, TypeAlias

from ackclock.input.tagged_union import Chosen
from ackclock.scenario.keys import Tables
from ackclock.scenario.traffic.flows import Sending

if TYPE_CHECKING:
    from ackclock.scenario.traffic.datagrams import Datagrams
    from ackclock.scenario.traffic.flows import Flows
    from ackclock.scenario.traffic.generated import Generated
    from ackclock.scenario.traffic.quic import QuicFlows

    AnyFlows: TypeAlias = Flows | QuicFlows
    AnyTraffic: TypeAlias = Generated | Datagrams
else:
    AnyFlows = AnyTraffic = Sending

#: Kind in the scenario → table.
KINDS = Tables(
    __name__,
    {
        "poisson": "generated:Poisson",
        "periodic": "generated:Periodic",
        "once": "generated:SingleTransfers",
        "sources": "generated:Sources",
        "web": "generated:Web",
        "incast": "generated:Incast",
        "udp": "datagrams:Udp",
        "on-off": "datagrams:OnOff",
        "media": "media:Media",
    },
)

#: Transport of `[[flows]]` → table.
TRANSPORTS = Tables(__name__, {"tcp": "flows:Flows", "quic": "quic:QuicFlows"})

#: Words that people write in `[[traffic]]`, and the table that they belong to.
MISPLACED = dict.fromkeys(("quic", "transport"), 'a table [[flows]] with transport = "quic"; no traffic is over QUIC')

ListedFlows: TypeAlias = Annotated[AnyFlows, Chosen("transport", TRANSPORTS, default="tcp")]
Traffic: TypeAlias = Annotated[AnyTraffic, Chosen("kind", KINDS, misplaced=MISPLACED)]
