"""Figure 2.6: the window of the model over the simulation's, with both expressions of V and with the first one."""

from collections.abc import Mapping
from itertools import islice

import numpy as np
from matplotlib.figure import Figure

from ackclock.dataset import Dataset
from ackclock.figures.plots import style
from ackclock.gallery import figures
from ackclock.metrics import RunView
from ackclock.theory import single_flow

SPAN_S = 30.0

#: The drawn cycles of the first expression without the second: from the first long one among them on.
CYCLES_SHOWN = (10, 17)


@style.styled
def draw(theory: Mapping[str, Dataset], packet: Mapping[str, Dataset], *_others: object) -> Figure:
    """A panel for each model."""
    fig = style.figure(3.1)
    both, alone = fig.subplots(1, 2, sharey=True, squeeze=False)[0]
    together = {"simulation": packet["both"], "model": theory["both"]}
    figures.overlay_windows(both, together, SPAN_S, "both expressions of V: window (segments)")
    figures.overlay_windows(alone, {"simulation": packet["both"]}, SPAN_S, "the first one alone: window (segments)")
    flow = model(style.first_run(theory["both"]))
    settled = list(islice(single_flow.cycles(flow, first_expression), *CYCLES_SHOWN))
    start_s, times_s, windows = 0.0, np.empty(0), np.empty(0)
    for cycle in settled[int(settled[0].end_s < settled[1].end_s) :]:
        local_s = np.linspace(0, cycle.end_s, 400)
        times_s, windows = np.append(times_s, start_s + local_s), np.append(windows, cycle.windows(local_s))
        start_s += cycle.end_s
    alone.plot(times_s, windows, color=style.COLOURS[1], label="model")
    fig.legend(*both.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return fig


def model(view: RunView) -> single_flow.SingleFlow:
    """The run's flow in the model; the limit of its queue may be one in bytes."""
    link, given = view.plan.links[0], view.plan.options["theory"]["single_cubic"]
    wire_bits, limit = 8 * view.plan.packet_bytes, link.queue.parameters
    buffer_p = limit["limit_packets"] if "limit_packets" in limit else 8 * limit["limit_bytes"] / wire_bits
    return single_flow.SingleFlow(link.rate_bps / wire_bits, view.plan.mean_base_rtt_s, buffer_p, **given)


def first_expression(flow: single_flow.SingleFlow, window: float, last: float) -> single_flow.Epoch:
    """Fast convergence lowers w_max to (1 − β/2) W, and V = ∛(β w_max / c) as without it (equation 2.12)."""
    w_max = single_flow.after_loss(flow, window, last).plateau
    return single_flow.Epoch((1 - flow.beta) * w_max, w_max)
