"""Makes the page that sets fitted models beside packets they have not seen.

Runs the packet engine on three scenarios to fit on and on eleven others, and the models on those; writes
`concepts/fitted-models.md`. A few minutes of the processor.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import claims
import numpy as np

import ackclock as ac
from ackclock.dataset import Dataset
from ackclock.experiments import fit

DOCS = Path(__file__).resolve().parent
SEEDS = (1, 2, 3)

SCENARIO = """
duration = "60s"
warmup = "20s"
[network]
topology = "dumbbell"
rate = "{rate}"
rtt = {rtt}
queue = {{ discipline = "pfifo", limit = "{limit}" }}
{flows}
[record]
interval = "20ms"
"""

GROUP = """
[[flows]]
count = {count}
congestion = "{control}"
start = {{ jitter = "1s" }}
"""

FTTH = """
duration = "60s"
warmup = "20s"
[network]
topology = "dumbbell"
rate = "1Gbit"
rtt = "20ms"
frame_overhead = "0B"
queue = { discipline = "pfifo", limit = "500p" }
[[flows]]
count = 10
congestion = { kind = "cubic", variant = "2008", fast_convergence = false }
tcp = { stack = "ns2", mss = "1440B", sack = true }
start = { jitter = "1s" }
[record]
interval = "10ms"
"""


def scenario(rate: str, rtt: str, limit: str, **groups: int) -> str:
    """The TOML of one of the scenarios; groups are controls and how many flows have them."""
    flows = "".join(GROUP.format(count=count, control=control) for control, count in groups.items())
    return SCENARIO.format(rate=rate, rtt=rtt, limit=limit, flows=flows)


SPREAD = '{ from = "20ms", to = "60ms" }'

#: The scenarios that are fitted on.
FITTED_SCENARIOS: Mapping[str, str] = {
    "10 CUBIC, 100 Mb/s, 40 ms, 1 BDP": scenario("100Mbit", '"40ms"', "1bdp", cubic=10),
    "20 Reno, 300 Mb/s, 20 ms, 1 BDP": scenario("300Mbit", '"20ms"', "1bdp", reno=20),
    "10 CUBIC, 400 Mb/s, 50 ms, 0.5 BDP": scenario("400Mbit", '"50ms"', "0.5bdp", cubic=10),
}

#: The scenarios that are predicted: other rates, buffers, RTTs and mixes.
PREDICTED_SCENARIOS: Mapping[str, str] = {
    "20 CUBIC, 200 Mb/s, 20 ms, 0.5 BDP": scenario("200Mbit", '"20ms"', "0.5bdp", cubic=20),
    "10 CUBIC, 300 Mb/s, 60 ms, 0.3 BDP": scenario("300Mbit", '"60ms"', "0.3bdp", cubic=10),
    "30 CUBIC, 150 Mb/s, 80 ms, 0.7 BDP": scenario("150Mbit", '"80ms"', "0.7bdp", cubic=30),
    "10 Reno, 100 Mb/s, 40 ms, 0.5 BDP": scenario("100Mbit", '"40ms"', "0.5bdp", reno=10),
    "10 CUBIC and 10 Reno, 200 Mb/s, 30 ms, 0.5 BDP": scenario("200Mbit", '"30ms"', "0.5bdp", cubic=10, reno=10),
    "10 CUBIC, 200 Mb/s, 20 to 60 ms, 0.5 BDP": scenario("200Mbit", SPREAD, "0.5bdp", cubic=10),
}

#: Predicted as well, chosen when the mean field was finished and before they were run.
FRESH: Mapping[str, str] = {
    "15 CUBIC, 250 Mb/s, 30 ms, 0.4 BDP": scenario("250Mbit", '"30ms"', "0.4bdp", cubic=15),
    "25 Reno, 400 Mb/s, 25 ms, 0.7 BDP": scenario("400Mbit", '"25ms"', "0.7bdp", reno=25),
    "12 CUBIC, 500 Mb/s, 40 ms, 0.8 BDP": scenario("500Mbit", '"40ms"', "0.8bdp", cubic=12),
    "10 CUBIC and 20 Reno, 300 Mb/s, 50 ms, 0.5 BDP": scenario("300Mbit", '"50ms"', "0.5bdp", cubic=10, reno=20),
    "12 Reno, 150 Mb/s, 30 to 90 ms, 0.6 BDP": scenario("150Mbit", '{ from = "30ms", to = "90ms" }', "0.6bdp", reno=12),
}

#: The compared metrics; bounds for a model's error: points, a share of the packets' value, points.
METRICS = ("utilisation", "queue_mean_p", "synchronisation")
BOUNDS = (0.01, 0.10, 0.10)

MODELS = ("fluid", "meanfield")


@dataclass(frozen=True, slots=True)
class Measured:
    """Means over the seeds of `METRICS`, and of the period of the mean window."""

    values: tuple[float, ...]
    period_s: float


def measured(data: Dataset) -> Measured:
    """Return the metrics of a result."""
    runs = [run["metrics"] for run in data.metrics()["runs"]]
    means = [float(np.mean([run[name] for run in runs])) for name in (*METRICS, "cwnd_period_s")]
    return Measured(tuple(means[:-1]), means[-1])


def run(text: str, engine: str) -> Dataset:
    """The mean field is the same for all seeds."""
    return ac.run(ac.loads(text).plan(), engine=engine, seeds=SEEDS if engine != "meanfield" else SEEDS[:1])


def off(model: Measured, packets: Measured) -> tuple[float, ...]:
    """Return the distances of a model from the packet engine, in the units of `BOUNDS`."""
    pairs = zip(model.values, packets.values, (1.0, packets.values[1], 1.0), strict=True)
    return tuple(abs(one - other) / by for one, other, by in pairs)


def row(name: str, engine: str, found: Measured, packets: Measured | None = None) -> str:
    """A line of a table; what is beyond its bound is bold."""
    shapes = ("{:.2%}", "{:.1f}", "{:.3f}")
    errors = off(found, packets) if packets else (0.0,) * len(BOUNDS)
    cells = [shape.format(value) for shape, value in zip(shapes, found.values, strict=True)]
    marked = [
        f"**{cell}**" if error > bound else cell for cell, error, bound in zip(cells, errors, BOUNDS, strict=True)
    ]
    return "| " + " | ".join((name, engine, *marked, f"{found.period_s:.3f}")) + " |\n"


HEAD = (
    "| scenario | engine | utilisation | mean queue, packets | synchronisation | period, s |\n"
    "| --- | --- | --- | --- | --- | --- |\n"
)


def compared(
    name: str, text: str, table: str, engines: tuple[str, ...] = MODELS
) -> tuple[str, dict[str, tuple[float, ...]]]:
    """Rows of the packets, of each model by default and as fitted; and the errors of each."""
    packets = measured(run(text, "packet"))
    rows, errors = row(name, "packet", packets), {}
    for engine in engines:
        plain, fitted = measured(run(text, engine)), measured(run(text + table, engine))
        rows += row("", f"{engine}, default", plain, packets) + row("", f"{engine}, fitted", fitted, packets)
        errors[f"`{engine}`, default"] = off(plain, packets)
        errors[f"`{engine}`, fitted"] = off(fitted, packets)
    return rows, errors


def verdict(errors: Mapping[str, list[tuple[float, ...]]]) -> str:
    """Return the number of scenarios that each model predicts within each bound."""
    words = ("utilisation within 1 point", "mean queue within 10 %", "synchronisation within 0.1")
    lines = []
    for engine, found in errors.items():
        counts = [sum(one[place] <= bound for one in found) for place, bound in enumerate(BOUNDS)]
        said = ", ".join(f"{word} in {count}" for word, count in zip(words, counts, strict=True))
        lines.append(f"- {engine}, of {len(found)} scenarios: {said}.\n")
    return "".join(lines)


def predicted(scenarios: Mapping[str, str], table: str, engines: tuple[str, ...]) -> str:
    """The table of some scenarios, and the verdict on them."""
    rows = ""
    errors: dict[str, list[tuple[float, ...]]] = {}
    for name, text in scenarios.items():
        added, found = compared(name, text, table, engines)
        rows += added
        for engine, each in found.items():
            errors.setdefault(engine, []).append(each)
    return HEAD + rows + "\n" + verdict(errors)


INTRODUCTION = """<!-- Made by docs/make_fitted.py: edit that. -->

# Fitted models

The fluid and mean-field engines require the number of flows that a loss event hits, and which ones. `ackclock fit`
learns both from packets. This page fits on three scenarios and predicts others, with other rates, buffers, RTTs and
mixes. All numbers come from

```console
$ python docs/make_fitted.py
```

"""

FITTED = """## Fitted parameters

Packet runs of seeds 1 to 3, 60 s of which 20 s are warm-up, on

{names}

```toml
{table}```

Tail-drop queues select flows by rate a little: the exponent of the rate is below a third, far from the 1 of the mean
field's default and from the fluid's “fastest first”. <!-- so: max(map(abs,
numbers(r"rate: (-?[\\d.]+) \\(|loss_rate_exponent = (-?[\\d.]+)"))) < 1 / 3 --> In each round trip a full
queue loses as many packets as the windows grow by. The mean field has that without being fitted, since lost packets
clock nothing out (`recovery`, on by default). The fitted values are estimated for the
equations without it, and come with `recovery = false`.

## What the models predict

These scenarios were not used for fitting. The period is that of the mean window. Errors above 1 point (utilisation), 10
% (queue) or 0.1 (synchronisation) are **bold**.

"""

CHOSEN = """
### Fresh scenarios

The mean field's `recovery` was worked out with the six scenarios above in view. These five were written down
afterwards, with the same bounds, before any engine had run them.

"""

OWN = """
## Ten CUBIC flows on FTTH lines

The scenario of [B3.5–3.8](../gallery/B3.5-3.8.md), with what was fitted to its own packet runs.

"""


def main() -> None:
    """Writes the page."""
    seen = {name: run(text, "packet") for name, text in FITTED_SCENARIOS.items()}
    table = fit.fit(seen).toml(["RUN…"])
    names = "".join(f"- {name}\n" for name in FITTED_SCENARIOS).rstrip()
    ftth = fit.fit({"FTTH": run(FTTH, "packet")}).toml(["results/ftth-packet"])
    own, _ = compared("FTTH", FTTH, ftth)
    page = INTRODUCTION + FITTED.format(names=names, table=table) + predicted(PREDICTED_SCENARIOS, table, MODELS)
    page += CHOSEN + predicted(FRESH, table, ("meanfield",))
    page += OWN + f"```toml\n{ftth}```\n\n" + HEAD + own
    claims.write(DOCS / "concepts" / "fitted-models.md", page)


if __name__ == "__main__":
    main()
