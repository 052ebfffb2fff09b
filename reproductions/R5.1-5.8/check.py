"""The rule of R5.1–5.8: four congestion controls in each direction of an asymmetric line."""

from collections.abc import Iterable, Mapping
from math import inf

from ackclock.gallery import Measured, Row, ratio
from ackclock.gallery.entry import Published
from ackclock.gallery.rows import Measure, Values
from ackclock.metrics import RunView
from ackclock.reproductions.measures import rtt_of_acks_s

ENGINES = ("packet", "linux")

#: The link capacity for TCP in table 5.1, relative to its rate at layer 2: 288 of 300 kB/s.
TCP_SHARE = 0.96

#: The flows' numbers.
DOWN, UP = 0, 1

LOSS_BASED = ("reno", "cubic", "compound")

#: “90 to 100 %”; a percent more is the rounding of the capacity.
FROM_90, FROM_80 = (0.9, 1.01), (0.8, 1.01)

#: “Hardly reaches 60 %”.
HARDLY_60, ABOUT_60 = (0.5, 0.63), (0.4, 0.75)

#: “Similar”: within a tenth; within a quarter it is of its kind.
SIMILAR, ALIKE = (0.9, 1.1), (0.75, 1.25)

#: “Almost 100 %”.
ALMOST_ALL, MUCH = (0.95, 1.01), (0.85, 1.01)

#: “Catastrophic”: half at most; a fifth less is still less.
CATASTROPHIC, LESS = (0.0, 0.5), (0.0, 0.8)

#: “Below 400 ms”.
BELOW_400_MS, BELOW_500_MS = (0.0, 0.4), (0.0, 0.5)

#: “About 10 %” more.
A_TENTH_MORE, MORE = (1.05, 1.15), (1.0, 1.25)

#: “Much less”.
MUCH_LESS, NOT_MORE = (0.0, 0.7), (0.0, 0.9)

#: “Lower”: by a twentieth at least; not higher.
LOWER, NOT_HIGHER = (0.0, 0.95), (0.0, 1.0)

#: “5 to 10 % more”, read from bars.
A_LITTLE_MORE, UP_TO_A_QUARTER = (1.03, 1.12), (1.0, 1.25)

#: “30 to 40 % less”, read from bars.
A_THIRD_LESS, CLEARLY_LESS = (0.57, 0.73), (0.4, 0.9)

#: “90 %”, “about 50 %”, read from bars.
ABOUT_90, ROUND_90 = (0.85, 0.95), (0.75, 1.01)
ABOUT_50, ROUND_50 = (0.4, 0.6), (0.3, 0.7)

#: “Explodes”: half as long again.
EXPLODES, LONGER = (1.5, inf), (1.1, inf)

#: “High”, “20 to 40 %”.
HIGH, RATHER_HIGH = (0.85, 1.01), (0.7, 1.01)
FROM_20_TO_40, FROM_10_TO_55 = (0.2, 0.4), (0.1, 0.55)


#: The pairs that the kernel runs: Linux has no Compound.
IN_KERNEL = ("reno reno", "cubic cubic", "cubic reno", "vegas reno", "reno vegas")


def runs(engine: str, case: str) -> bool:
    """The kernel runs some pairs on the four lines of table 5.1."""
    return engine != "linux" or case.endswith(IN_KERNEL)


def is_quick(engine: str, case: str) -> bool:
    """For a short look the kernel runs New Reno on the slow line."""
    return engine != "linux" or case in ("slow right-sized reno reno", "slow bloated reno reno")


def _use(flow: int) -> Measure:
    """A flow's share of what its link has for TCP."""

    def use(view: RunView) -> float | None:
        rate_bps = view.plan.links[flow].rate_bps
        return float(8 * view.flows["measured_bytes"][flow] / view.measured_s / (rate_bps * TCP_SHARE))

    return use


MEASURES = {"down": _use(DOWN), "up": _use(UP), "down-rtt": rtt_of_acks_s(DOWN), "up-rtt": rtt_of_acks_s(UP)}


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """Rows in the order of the claims."""
    return [*_right_sized(measured), *_fast(measured), *_bloated(measured)]


def _right_sized(measured: Measured) -> list[Row]:
    """Figures 5-1 and 5-2."""
    reno, cubic, compound, vegas = (
        measured[f"slow right-sized {name} {name}"] for name in ("reno", "cubic", "compound", "vegas")
    )
    starved = measured["slow right-sized vegas reno"]["down"]
    beside_vegas = [measured[f"slow right-sized vegas {name}"]["up"] for name in LOSS_BASED]
    slow = [found for case, found in measured.items() if case.startswith("slow right-sized")]
    return [
        Row("slow-reno-down", reno["down"], FROM_90, FROM_80),
        Row("slow-reno-up", reno["up"], HARDLY_60, ABOUT_60),
        *_similar("slow-cubic", cubic, reno),
        *_similar("slow-compound", compound, reno),
        Row("slow-vegas-up", _mean(beside_vegas), ALMOST_ALL, MUCH),
        Row("slow-vegas-down", ratio(starved, reno["down"]), CATASTROPHIC, LESS),
        Row("slow-same-rtt", ratio(reno["up-rtt"], reno["down-rtt"]), SIMILAR, ALIKE),
        Row(
            "slow-rtt",
            _longest([case[name] for case in slow for name in ("up-rtt", "down-rtt")]),
            BELOW_400_MS,
            BELOW_500_MS,
        ),
        Row("slow-cubic-rtt", ratio(cubic["down-rtt"], reno["down-rtt"]), A_TENTH_MORE, MORE),
        Row("slow-vegas-rtt", ratio(vegas["down-rtt"], reno["down-rtt"]), MUCH_LESS, NOT_MORE),
    ]


def _fast(measured: Measured) -> list[Row]:
    """Figure 5-3."""
    pairs = [(down, up) for down in LOSS_BASED for up in LOSS_BASED if (down, up) != ("cubic", "compound")]
    reno = measured["fast right-sized reno reno"]
    uploads = {name: ratio(measured[f"fast right-sized reno {name}"]["up"], reno["up"]) for name in LOSS_BASED}
    crushed = measured["fast right-sized cubic reno"]["up"]
    vegas = [measured[f"{line} right-sized vegas reno"]["down"] for line in ("fast", "slow")]
    return [
        Row(
            "fast-down",
            _mean(measured[f"fast right-sized {down} {up}"]["down"] for down, up in pairs),
            ALMOST_ALL,
            MUCH,
        ),
        Row(
            "fast-cubic-compound",
            ratio(measured["fast right-sized cubic compound"]["down"], reno["down"]),
            LOWER,
            NOT_HIGHER,
        ),
        Row("fast-compound-up", uploads["compound"], A_LITTLE_MORE, UP_TO_A_QUARTER),
        Row("fast-cubic-up", uploads["cubic"], A_LITTLE_MORE, UP_TO_A_QUARTER),
        Row("fast-cubic-crushes", ratio(crushed, reno["up"]), A_THIRD_LESS, CLEARLY_LESS),
        Row("fast-vegas", tuple(10 / 2.4 * value for value in ratio(*vegas) if value is not None), SIMILAR, ALIKE),
    ]


def _bloated(measured: Measured) -> list[Row]:
    """Figures 5-5 to 5-7."""
    reno, cubic = (measured[f"slow bloated {name} {name}"] for name in ("reno", "cubic"))
    fast_reno, fast_cubic = (measured[f"fast bloated reno {name}"]["up"] for name in ("reno", "cubic"))
    victims = [measured[f"fast bloated {down} {up}"] for down in LOSS_BASED for up in ("reno", "compound")]
    return [
        Row("bloated-reno-up", reno["up"], ABOUT_90, ROUND_90),
        Row("bloated-reno-down", reno["down"], ABOUT_50, ROUND_50),
        Row("bloated-vegas-up", _against_vegas(measured, "slow"), ALMOST_ALL, MUCH),
        Row("bloated-cubic-rtt", ratio(cubic["up-rtt"], cubic["down-rtt"]), EXPLODES, LONGER),
        Row("fast-bloated-up", _mean(case["up"] for case in victims), HIGH, RATHER_HIGH),
        Row("fast-bloated-down", _mean(case["down"] for case in victims), FROM_20_TO_40, FROM_10_TO_55),
        Row("fast-bloated-vegas-up", _against_vegas(measured, "fast"), ALMOST_ALL, MUCH),
        Row("fast-bloated-cubic", ratio(fast_cubic, fast_reno), LOWER, NOT_HIGHER),
    ]


def _similar(claim: str, one: Mapping[str, Values], other: Mapping[str, Values]) -> list[Row]:
    return [Row(claim, ratio(one[link], other[link]), SIMILAR, ALIKE, link) for link in ("down", "up")]


def _against_vegas(measured: Measured, line: str) -> Values:
    """The use of the down link by the three that fill queues, beside a Vegas upload."""
    return _mean(measured[f"{line} bloated {name} vegas"]["down"] for name in LOSS_BASED)


def _mean(cases: Iterable[Values]) -> Values:
    """Seed by seed, the mean over the cases that have a value."""
    return tuple(sum(known) / len(known) if known else None for known in map(_present, zip(*cases, strict=True)))


def _longest(cases: Iterable[Values]) -> Values:
    """Seed by seed, the greatest value."""
    return tuple(max(known, default=None) for known in map(_present, zip(*cases, strict=True)))


def _present(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]
