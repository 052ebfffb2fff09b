"""Makes the page that compares the packet engine with closed forms and published tables.

Runs the cells of `tests/oracle` and writes `reference/oracles.md` into docs/, which is not kept in the repository.
`make_oracles.py --long` takes the tables further down, for as long as `make oracle` does.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

DOCS = Path(__file__).resolve().parent
sys.path.insert(0, str(DOCS.parent / "tests"))

from oracle import lab, response  # type: ignore[import-not-found] # noqa: E402
from oracle import test_closed_forms as forms  # noqa: E402
from oracle.response import FRACTIONS, RENO, WHOLE_SEGMENTS, Cell  # type: ignore[import-not-found] # noqa: E402

from ackclock import theory  # noqa: E402
from ackclock.theory.throughput import RANDOM  # noqa: E402

INTRODUCTION = """<!-- Made by docs/make_oracles.py: edit that. -->

# Compared with closed forms

This page compares the packet engine with formulas and published tables. The tests of `tests/oracle` require
the agreement; `make oracle` goes further down the tables.

## The average windows of RFC 9438

Tables 1 and 2 of the RFC: each 1/p-th data packet is lost, on a link where nothing queues; every segment is
acknowledged. Each cell has the published average window, that of the engine, and the difference.

"""

CUBIC = """
For CUBIC there are two columns for each C. *Fractions* is `variant = "rfc9438"`, without fast convergence, after 300
losses; *whole* is the default, Linux's arithmetic in whole segments, for a flow that starts near the table's
window. The start matters, because the RFC's model has an epoch end where the curve is flat. There an epoch
that begins from a somewhat larger window also ends at that window: in fractions it comes back by an ever smaller
part, in whole segments it may stop before. HyStart is off, as no queue could end the first slow start.

Where Reno's average and the cubic's are close, as for 10⁻³ and C = 0.4 at 100 ms, a window that follows the RFC has a
larger average than the table gives: the table has the larger of the two averages, the window is the larger of the two
at every moment.

"""

RANDOM_LOSSES = """
## Random losses

One Reno flow of 100 ms, each packet lost with probability p; goodput in segments per second. Mathis et al. (1997) have
√(3/2) as the constant for periodic losses and 1.31 for independent ones. Padhye et al. (2000, equation 30) estimate
their p as loss indications, fast recoveries and timeouts, per packet sent. Growth counts acknowledged segments, so
delayed ACKs make no difference. Mathis's formula has no timeouts and leaves out the round trip of the retransmission.

"""

SAWTOOTH = """
## One flow and its buffer

Utilisation by one Reno flow, 50 Mb/s and 100 ms, with b bandwidth–delay products of buffer, and
3 (1 + b)² / (4 (1 + b + b²)).

"""


def windows(exponents: Iterable[int], fractions: Iterable[int]) -> str:
    """Tables 1 and 2."""
    deep = set(fractions)
    head = (
        "p",
        "RTT",
        "Reno",
        *(f"C = {c:g}, {kind}" for c in response.CONSTANTS[1:] for kind in ("whole", "fractions")),
    )
    rows = []
    for rtt_s in response.TABLES:
        for exponent in exponents:
            cells = [against(Cell(exponent, rtt_s, None), RENO)]
            for c in response.CONSTANTS[1:]:
                cell = Cell(exponent, rtt_s, c)
                cells += [against(cell, WHOLE_SEGMENTS), against(cell, FRACTIONS) if exponent in deep else "–"]
            rows.append((f"1e-{exponent}", f"{rtt_s * 1e3:g} ms", *cells))
    return table(head, rows)


def against(cell: Cell, method: response.Method) -> str:
    """Published and measured."""
    measured = response.measure(cell, method)
    return f"{cell.published} / {measured.window:.0f} ({measured.difference:+.1%})"


def random_losses() -> str:
    """Mathis and PFTK."""
    rows = []
    for loss in (1e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1):
        data = forms.bernoulli(loss)
        rate, events = forms.segments_per_s(data), forms.loss_events(data)
        expected = (
            theory.mathis_window(loss) / forms.RTT_S,
            theory.mathis_window(loss, constant=RANDOM) / forms.RTT_S,
            forms.pftk(events),
        )
        beside = [f"{value:.1f} ({rate / value - 1:+.1%})" for value in expected]
        rows.append((f"{loss:g}", f"{rate:.1f}", *beside[:2], f"{events:.3g}", beside[2]))
    return table(("p", "engine", "Mathis, √(3/2)", "Mathis, 1.31", "loss events per packet", "PFTK"), rows)


def sawtooth() -> str:
    """Utilisation over short buffers."""
    rows = []
    for buffer in (0.05, 0.1, 0.25, 0.5, 1.0):
        data = lab.run(600.0, 0.1, '"reno"', warmup_s=60.0, rate="50Mbit", limit=f"{buffer}bdp")
        expected, found = theory.sawtooth_utilisation(buffer), lab.utilisation(data)
        rows.append((f"{buffer:g}", f"{expected:.4f}", f"{found:.4f}", f"{found / expected - 1:+.2%}"))
    return table(("b", "formula", "engine", "difference"), rows)


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [head, ("---",) * len(head), *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def main() -> None:
    """Writes the page."""
    deep = "--long" in sys.argv[1:]
    tables = windows(range(3, 8 if deep else 6), range(3, 7 if deep else 5))
    text = INTRODUCTION + tables + CUBIC + RANDOM_LOSSES + random_losses() + SAWTOOTH + sawtooth()
    (DOCS / "reference" / "oracles.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
