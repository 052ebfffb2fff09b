"""Export a shell script that runs flent between two hosts, with the scenario's TCP flows and their CCAs.

The network is the user's: what stands between the hosts, `ackclock export --to tc` may make. flent's tests are those of
its documentation (https://flent.org/tests.html); `cc_algos` and `upload_streams` are its test parameters.
"""

from __future__ import annotations

from collections.abc import Iterator

from ackclock.exporters.script import ExportError, Script, jitter_notes, shell
from ackclock.input.fields import one_line, word
from ackclock.plan import Plan

#: More streams than this are more than one host starts at once.
MAX_FLOWS = 200

#: flent's least step, in seconds.
MIN_STEP_S = 0.05

#: Usage of the file.
SENTENCES = (
    "sh FILE HOST runs it: flent here, netserver of netperf at HOST. This reads what it leaves:",
    "    ackclock import *.flent.gz --out DIR",
)


def write(plan: Plan) -> Script:
    """Return the script. Raises `ExportError` if there are no TCP flows, or too many."""
    if not plan.flows:
        raise ExportError("flent", ["flows one by one: it starts streams"])
    if len(plan.flows) > MAX_FLOWS:
        raise ExportError("flent", [f"more than {MAX_FLOWS} flows"])
    notes = tuple(_notes(plan))
    return shell(plan, SENTENCES, _commands(plan), notes)


def _commands(plan: Plan) -> Iterator[str]:
    interval_s = max(MIN_STEP_S, plan.record.interval_s)
    yield 'host=${1:?"expected a host that runs netserver"}'
    yield ""
    yield f'flent tcp_nup -H "$host" -l {max(1, round(plan.duration_s))} --step-size {interval_s:g} \\'
    kinds = [control.kind for flow in plan.flows if (control := plan.groups[flow.group].congestion)]
    yield f"    --test-parameter upload_streams={len(plan.flows)} \\"
    yield f"    --test-parameter cc_algos={','.join(kinds)} \\"
    yield f"    --socket-stats --title-extra {word(plan.name)}"


def _notes(plan: Plan) -> Iterator[str]:
    link = plan.bottleneck_link
    queue, rtt_ms = link.queue.discipline, 1e3 * plan.mean_base_rtt_s
    yield f"the network: {one_line(link.name)} with {link.rate_bps / 1e6:g} Mb/s, {queue}, a base RTT of {rtt_ms:g} ms"
    yield from jitter_notes(plan)
    if len({(flow.start_s, flow.stop_s) for flow in plan.flows}) > 1 or any(flow.start_s for flow in plan.flows):
        yield "flows that begin or end at times of their own: flent's begin together"
    if any(flow.size_bytes is not None for flow in plan.flows):
        yield "sizes of transfers: flent's streams last as long as the test"
    if plan.traffic or plan.datagrams:
        yield "generated traffic, UDP and QUIC"
