"""Makes the page on ABCC's open parameters: what each of them does to rate, queue, fairness and short transfers.

Runs the packet engine and writes `concepts/abcc-sensitivity.md`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import claims

import ackclock as ac
from ackclock.dataset import Dataset

DOCS = Path(__file__).resolve().parent
#: Seeds of the endless flows, and of the short transfers, which vary more.
SEEDS, MANY_SEEDS = tuple(range(1, 4)), tuple(range(1, 6))

INTRODUCTION = """<!-- Made by docs/make_abcc_sensitivity.py: edit that. -->

# ABCC's open parameters

The thesis that describes [ABCC](../algorithms/congestion/abcc.md) gives no values for α, β, γ, for the number of groups
n and for their sizes (x, y). The spec's defaults are our choice. This page shows the effect of other values. All
numbers come from

```console
$ python docs/make_abcc_sensitivity.py
```

and are means of seeds 1 to 3, or for completion times of seeds 1 to 5, with ± the standard deviation. Values not
mentioned are those of the spec. *Few* is 2 flows through 100 Mb/s with 10 ms, *many* 10 flows through 1 Gb/s with 1 ms,
both with a queue of 100 packets, as in the thesis. They start within 100 ms. The queue is the mean backlog in packets
from 4 to 10 s.

What they show:

- α sets the queue, in proportion to the number of flows, until together they want more than fits. From there on they
  lose packets; the shares stay even. <!-- so: all(2.2 < number(row["few: queue"]) / number(row["α = γ"]) < 2.8 for row
  in rows("## α")[:4]) and all(10 < number(row["many: queue"]) / number(row["α = γ"]) < 12 for row in
  rows("## α")[:3]) and all(number(row[f"{size}: Jain"]) > 0.97 for row in rows("## α") for size in ("few", "many"))
  and [number(row["few: lost"]) > 0 for row in rows("## α")] == [False] * 4 + [True] * 3 -->
- β trades steadiness for speed. Rate and queue both integrate, so equation 4.3 orbits its equilibrium; a larger β
  widens the orbit, and the link idles at its low end. <!-- so: all((used := [number(row[f"{size}: used"]) for row in
  rows("## β")[1:]]) == sorted(used, reverse=True) for size in ("few", "many")) -->
- A γ below α keeps the queue shorter: longer than if both had γ's value, shorter than if both had α's. <!-- so:
  all((at := {row["α = γ"]: number(row[f"{size}: queue"]) for row in rows("## α")}) and all(at[row["γ"]] <
  number(row[f"{size}: queue"]) < at["8"] for row in rows("## γ")[:3]) for size in ("few", "many")) -->
- One group is best for transfers over an idle link, and more or larger groups delay their rate: with 16 groups, or
  with groups larger than the first flights, 10 MB take a third to a half as long again as with the defaults. <!-- so:
  all(1.3 < number(row["10 MB, idle"]) / number(rows("## n")[2]["10 MB, idle"]) < 1.5 for row in (rows("## n")[4],
  rows("## x and y")[5])) and all(number(rows("## n")[0][column]) < number(row[column]) for row in
  rows("## n")[1:] for column in [*row][1:] if column.endswith("idle")) --> Slow start continues meanwhile, so 64 KB
  take no more than a millisecond longer than with Reno, however many the groups. <!-- so: {number(row["64 KB, idle"])
  for row in [*rows("## n")[1:], *rows("## x and y"), *rows("Reno and CUBIC for")]} == {42, 43} -->
- Whether segments or whole groups are counted makes less than a tenth of a difference to 10 MB. <!-- so:
  abs(number(rows("## x and y")[6]["10 MB, idle"]) / number(rows("## x and y")[2]["10 MB, idle"]) - 1) < 0.1 -->
- At one loss in a thousand ABCC uses less of the link than Reno and CUBIC: <!-- so:
  number(rows("## Random losses")[2]["ABCC"]) < min(number(rows("## Random losses")[2][other]) for other in ("Reno",
  "CUBIC")) - 5 --> a loss at a short RTT costs it little, but nothing restores the rate faster than equation 4.3.

"""

LONG = """
duration = "10s"
warmup = "4s"
[network]
topology = "dumbbell"
rate = "{rate}"
rtt = "{rtt}"
queue = {{ discipline = "pfifo", limit = "100p" }}
{network}
[[flows]]
count = {flows}
congestion = {congestion}
start = {{ jitter = "100ms" }}
[record]
interval = "1s"
"""

SHORT = """
duration = "30s"
[network]
topology = "dumbbell"
rate = "100Mbit"
rtt = "10ms"
queue = {{ discipline = "pfifo", limit = "100p" }}
[[flows]]
congestion = {congestion}
size = "{size}"
start = {{ at = "5s", jitter = "100ms" }}
{beside}
[record]
interval = "1s"
"""

COMPETITOR = """
[[flows]]
count = 2
congestion = "cubic"
start = { jitter = "100ms" }
"""

SETTINGS: Mapping[str, Mapping[str, object]] = {
    "few": {"rate": "100Mbit", "rtt": "10ms", "flows": 2},
    "many": {"rate": "1Gbit", "rtt": "1ms", "flows": 10},
}


def abcc(**parameters: object) -> str:
    """The TOML of an ABCC with these parameters."""
    words = "".join(f", {name} = {str(value).lower()}" for name, value in parameters.items())
    return f'{{ kind = "abcc"{words} }}'


def long_runs(congestion: str, setting: str, network: str = "") -> Dataset:
    """Endless flows in one of the settings."""
    text = LONG.format(congestion=congestion, network=network, **SETTINGS[setting])
    return ac.run(ac.loads(text, "sensitivity.toml").plan(), seeds=SEEDS)


def summary(data: Dataset) -> tuple[str, ...]:
    """Utilisation, mean backlog, loss rate and Jain's index."""
    links = data.links.filter(data.links["bottleneck"])
    seconds = next(ac.metrics.runs(data)).measured_s
    used = [8 * sent / rate / seconds for sent, rate in zip(links["departed_bytes"], links["rate_bps"], strict=True)]
    lost = sum(links["dropped_p"].to_list()) / max(1, sum(links["arrived_p"].to_list()))
    jain = [jains_index(run["measured_bytes"].to_list()) for run in data.flows.partition_by("run")]
    return (
        f"{sum(used) / len(used):.1%}",
        mean_and_deviation(links["backlog_mean_p"].to_list(), "{:.1f}"),
        f"{lost:.2%}",
        mean_and_deviation(jain, "{:.3f}"),
    )


def jains_index(shares: Sequence[float]) -> float:
    """(Σx)² / (n Σx²)."""
    return sum(shares) ** 2 / (len(shares) * sum(share * share for share in shares))


def mean_and_deviation(values: Sequence[float], shape: str) -> str:
    """`4.5 ± 0.2`."""
    mean = sum(values) / len(values)
    deviation = (sum((value - mean) ** 2 for value in values) / (len(values) - 1)) ** 0.5
    return f"{shape.format(mean)} ± {shape.format(deviation)}"


def fct_ms(congestion: str, size: str, beside: str = "") -> str:
    """Return the completion time of the short transfer."""
    text = SHORT.format(congestion=congestion, size=size, beside=beside)
    data = ac.run(ac.loads(text, "sensitivity.toml").plan(), seeds=MANY_SEEDS)
    first = data.flows.filter(data.flows["flow"] == 0)
    return mean_and_deviation([1e3 * seconds for seconds in first["fct_s"].to_list()], "{:.0f}")


def law(name: str, cases: Mapping[str, Mapping[str, object]]) -> str:
    """Return the effect of equation 4.3's parameters on endless flows."""
    head = (name, *(f"{setting}: {what}" for setting in SETTINGS for what in ("used", "queue", "lost", "Jain")))
    rows = []
    for label, parameters in cases.items():
        cells = [cell for setting in SETTINGS for cell in summary(long_runs(abcc(**parameters), setting))]
        rows.append((label, *cells))
    return table(head, rows)


SHORT_HEAD = ("64 KB, idle", "1 MB, idle", "10 MB, idle", "1 MB alongside two CUBIC flows")


def short_row(congestion: str) -> tuple[str, ...]:
    """Completion times in ms, by size, alone and not."""
    idle = [fct_ms(congestion, size) for size in ("64KB", "1MB", "10MB")]
    return (*idle, fct_ms(congestion, "1MB", COMPETITOR))


def prediction(name: str, cases: Mapping[str, Mapping[str, object]]) -> str:
    """Return the effect of the groups on short transfers."""
    rows = [(label, *short_row(abcc(**parameters))) for label, parameters in cases.items()]
    return table((name, *SHORT_HEAD), rows)


def yardsticks() -> str:
    """The same transfers with others."""
    return table(("", *SHORT_HEAD), [(kind, *short_row(f'"{kind}"')) for kind in ("reno", "cubic")])


def errors() -> str:
    """Random losses, the thesis's packet errors."""
    rows = []
    for loss in (0.0, 1e-4, 1e-3, 1e-2):
        network = f"loss = {{ probability = {loss} }}" if loss else ""
        kinds = (abcc(), '"reno"', '"cubic"')
        rows.append((f"{loss:g}", *(summary(long_runs(kind, "few", network))[0] for kind in kinds)))
    return table(("loss probability", "ABCC", "Reno", "CUBIC"), rows)


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [head, ("---",) * len(head), *rows]
    return "\n" + "".join("| " + " | ".join(line) + " |\n" for line in lines) + "\n"


ALPHA = """## α: how much waits

In segments; γ goes with α, so that equation 4.3 alone decides.
"""
BETA = """## β: how fast the gap is closed
"""
GAMMA = """## γ: from where on the rate does not rise

In segments; α is 8 here, to leave room below it.
"""
GROUPS = """## n: how many groups

Completion times in ms.
"""
SIZES = """## x and y: how large the groups are

Completion times in ms; *whole groups* is `count_first = true`, equation 4.1 to the letter.
"""
YARDSTICKS = """Reno and CUBIC for the same transfers:
"""
ERRORS = """## Random losses

How much of the link two flows use, with the defaults; a loss at a short RTT costs an eighth or little more.
"""


def main() -> None:
    """Writes the page."""
    parts = [INTRODUCTION, ALPHA]
    alphas = {f"{alpha}": {"alpha": float(alpha), "gamma": float(alpha)} for alpha in (1, 2, 4, 8, 16, 32, 64)}
    parts.append(law("α = γ", alphas))
    parts += [BETA, law("β", {f"{beta:g}": {"beta": beta} for beta in (0.01, 0.05, 0.1, 0.25, 0.5, 1.0)})]
    gammas = {f"{gamma}": {"alpha": 8.0, "gamma": float(gamma)} for gamma in (1, 2, 4, 6, 8, 16)}
    parts += [GAMMA, law("γ", gammas)]
    parts += [GROUPS, prediction("n", {str(n): {"groups": n} for n in (1, 2, 4, 8, 16)})]
    bounds = ((2, 2), (2, 4), (4, 8), (8, 10), (8, 16), (16, 32))
    sizes: dict[str, Mapping[str, object]] = {f"{x} to {y}": {"group_min": x, "group_max": y} for x, y in bounds}
    sizes["4 to 8, whole groups"] = {"count_first": True}
    parts += [SIZES, prediction("x to y", sizes), YARDSTICKS, yardsticks(), ERRORS, errors()]
    claims.write(DOCS / "concepts" / "abcc-sensitivity.md", "".join(parts).rstrip() + "\n")


if __name__ == "__main__":
    main()
