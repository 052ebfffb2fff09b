"""Makes the page that fits what the thesis leaves open of ABCC to what it prints.

Runs the packet engine and writes `concepts/abcc-fit.md`: section 5.3, two flows through 100 Mb/s with and without
random errors, and table 5.1, short transfers in a fat tree.
"""

from __future__ import annotations

from pathlib import Path

import claims
import numpy as np

import ackclock as ac

DOCS = Path(__file__).resolve().parent
SEEDS, TREE_SEEDS = tuple(range(1, 6)), tuple(range(1, 4))

INTRODUCTION = """<!-- Made by docs/make_abcc_fit.py: edit that. -->

# ABCC's open parameters, fitted

The thesis gives no values for α, β and γ of [ABCC](../algorithms/congestion/abcc.md). It prints results, though:

- Section 5.3: two flows through 100 Mb/s with 10 ms and 100 packets. Without errors ABCC and TCP have *almost the same*
  throughput (1), with errors *both decrease* (below 1), and ABCC's is *higher* (above 1).
- Table 5.1: in a fat tree with ECMP, ABCC loses 1.1 % where TCP loses 1.4 %: 0.79 of it.

This page tries values of α (γ goes with it, so that equation 4.3 alone decides) and β on both. The rate of errors is 1
in 1000, which the thesis does not say. The tree is that of the gallery's [L5.4](../gallery/L5.4-5.5.md), 16 hosts at
half a load, for 200 ms; the load is not in the thesis either. All numbers come from

```console
$ python docs/make_abcc_fit.py
```

and are means over seeds 1 to 5, of the tree 1 to 3, with ± the standard error. Bold marks what the thesis's words
exclude, with the bands of the gallery's [L5.3](../gallery/L5.3.md): *same* is 0.9 to 1.1, *decreases* at most 0.95,
*higher* at least 1.05; of table 5.1 at most 0.9.

Only α = γ = 4 with β = 0.1 meets all of section 5.3: with less, ABCC is slower than TCP under errors, with more, or
with a larger β, errors cost it next to nothing. <!-- so: [row[""] for row in rows()[1:] if "*" not in row["same"] +
row["decreases"] + row["higher"]] == ["α = γ = 4, β = 0.1"] and number(rows()[1]["higher"]) < 1 and
min(number(row["decreases"].strip("*")) for row in rows()[3:]) > 0.98 --> All of them lose far less than TCP in the
tree; none comes near table 5.1's share of 0.79, <!-- so: max(number(row["of TCP's"]) for row in rows()[1:]) < 0.4 -->
and the table does not favour any of them. The spec keeps 2, as in Vegas; to reproduce section 5.3, write `congestion =
{ kind = "abcc", alpha = 4.0, gamma = 4.0 }`.

"""

LINE = """
duration = "10s"
warmup = "{warmup}"
[network]
topology = "dumbbell"
rate = "100Mbit"
rtt = "10ms"
queue = {{ discipline = "pfifo", limit = "100p" }}
frame_overhead = "0B"
{changes}
[tcp]
stack = "ns2"
[[flows]]
count = 2
congestion = {congestion}
start = {{ jitter = "100ms" }}
"""

CHANGES = """
loss = { probability = 0.0 }
changes = [{ at = "1.5s", link = "bottleneck", loss = { probability = 0.001 } }]
"""

TREE = """
duration = "200ms"
[network]
topology = "fat-tree"
ports = 4
levels = 3
rate = "1Gbit"
delay = "1us"
routing = "ecmp"
queue = {{ discipline = "pfifo", limit = "100p" }}
frame_overhead = "0B"
[tcp]
stack = "ns2"
[[traffic]]
kind = "poisson"
load = 0.5
between = "random"
size = {{ distribution = "pareto", shape = 1.16, mean = "10KB" }}
congestion = {congestion}
"""

#: α and β that are tried.
ALPHAS, BETAS = (2, 4, 8, 16), (0.1, 0.5)


def abcc(alpha: float, beta: float) -> str:
    """The TOML of an ABCC."""
    return f'{{ kind = "abcc", alpha = {alpha:.1f}, gamma = {alpha:.1f}, beta = {beta} }}'


def line(congestion: str, errors: bool) -> np.ndarray:
    """Goodput in Mb/s by seed; with errors that after they began."""
    changes, warmup = (CHANGES, "1.5s") if errors else ("", "0s")
    plan = ac.loads(LINE.format(congestion=congestion, changes=changes, warmup=warmup)).plan()
    runs = ac.run(plan, seeds=SEEDS).metrics()["runs"]
    return np.array([run["metrics"]["goodput_bps"] for run in runs]) / 1e6


def tree(congestion: str) -> np.ndarray:
    """Share of the packets that is lost, in per cent, by seed."""
    data = ac.run(ac.loads(TREE.format(congestion=congestion)).plan(), seeds=TREE_SEEDS)
    found = data.flows.select("run", "sent_packets", "dropped_packets").group_by("run", maintain_order=True).sum()
    return 100 * (found["dropped_packets"] / found["sent_packets"]).to_numpy()


def cell(values: np.ndarray, shape: str = "{:.1f}") -> str:
    """`63.5 ± 0.4`."""
    return f"{shape.format(values.mean())} ± {shape.format(values.std(ddof=1) / np.sqrt(values.size))}"


def judged(value: float, low: float, high: float) -> str:
    """Bold outside the band."""
    return f"{value:.3f}" if low <= value <= high else f"**{value:.3f}**"


HEAD = (
    "| | Mb/s without errors | with errors | same | decreases | higher | lost in the tree, % | of TCP's |\n"
    "| --- | --- | --- | --- | --- | --- | --- | --- |\n"
)


def row(name: str, congestion: str, tcp: tuple[float, float, float] | None) -> tuple[str, tuple[float, float, float]]:
    """A line of the table, and its means."""
    clean, errors, lost = line(congestion, errors=False), line(congestion, errors=True), tree(congestion)
    means = (float(clean.mean()), float(errors.mean()), float(lost.mean()))
    beside = tcp or means
    inf = float("inf")
    ratios = (
        judged(means[0] / beside[0], 0.9, 1.1),
        judged(means[1] / means[0], 0, 0.95),
        judged(means[1] / beside[1], 1.05, inf) if tcp else "1",
        judged(means[2] / beside[2], 0, 0.9) if tcp else "1",
    )
    cells = (cell(clean), cell(errors), *ratios[:3], cell(lost, "{:.2f}"), ratios[3])
    return "| " + " | ".join((name, *cells)) + " |\n", means


def main() -> None:
    """Writes the page."""
    first, tcp = row("TCP (Reno)", '"reno"', None)
    rows = [row(f"α = γ = {alpha}, β = {beta:g}", abcc(alpha, beta), tcp)[0] for beta in BETAS for alpha in ALPHAS]
    claims.write(DOCS / "concepts" / "abcc-fit.md", INTRODUCTION + HEAD + first + "".join(rows))


if __name__ == "__main__":
    main()
