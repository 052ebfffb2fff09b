"""The rule of K.util: utilisation of 10 Gb/s by buffer, variant and synchronisation."""

from collections.abc import Iterable, Mapping
from math import inf
from statistics import fmean

from ackclock.gallery import Measured, Row, ratio
from ackclock.gallery.entry import Published
from ackclock.gallery.rows import Values

ENGINES = ("fluid", "packet")
MEASURES = {"utilisation": "utilisation", "jain": "jain[*]"}

HIGH_SPEED = ("HSTCP", "CUBIC", "H-TCP")
BUFFERS = ("0.01", "0.02", "0.05", "0.1", "0.2", "0.4", "1")
LOW, HIGH, EARLY, PACKETS = "X=0.3", "X=0.6", "early", "packets"
#: The points of the packet engine: some minutes of the processor each.
POINTS = ("HSTCP 0.05", "CUBIC 0.05")

#: “More than 90 %”; 85 % is of its kind.
MORE_THAN_90, NEARLY = (0.90, inf), (0.85, inf)

#: “Lower”, “poor as compared to”: less; up to 2 % more it is about the same.
LOWER, ABOUT = (0.0, 1.0), (0.0, 1.02)

#: “Improved”, “further improves”: more; down to 2 % less it is about the same.
IMPROVED, NOT_WORSE = (1.0, inf), (0.98, inf)


def runs(engine: str, case: str) -> bool:
    """The packet engine runs a few points, the fluid engine everything else; the beginning alone of Reno."""
    if case.endswith(PACKETS):
        return engine == "packet" and case.startswith(POINTS)
    return engine == "fluid" and (not case.endswith(EARLY) or not case.startswith("H-TCP"))


def check(measured: Measured, published: Mapping[str, Published]) -> list[Row]:
    """The claims on utilisation and fairness; of the packet engine, the one that its points tell about."""
    if f"HSTCP 0.05 {PACKETS}" in measured:
        return [Row("hstcp", measured[f"HSTCP 0.05 {PACKETS}"]["utilisation"], MORE_THAN_90, NEARLY)]
    return [*_hstcp(measured), *_below_reno(measured), *_between_variants(measured), *_by_synchronisation(measured)]


def _hstcp(measured: Measured) -> Iterable[Row]:
    for losses in (LOW, HIGH):
        yield Row("hstcp", measured[f"HSTCP 0.05 {losses}"]["utilisation"], MORE_THAN_90, NEARLY, losses)


def _below_reno(measured: Measured) -> Iterable[Row]:
    for variant in HIGH_SPEED:
        found = ratio(_mean(measured, [variant], HIGH), _mean(measured, ["AIMD"], HIGH))
        yield Row("below-reno", found, LOWER, ABOUT, variant)
    for variant in ("HSTCP", "CUBIC"):
        early = ratio(_mean(measured, [variant], EARLY), _mean(measured, ["AIMD"], EARLY))
        yield Row("below-reno", early, LOWER, ABOUT, f"{variant}, the first 300 s", aside=True)


def _between_variants(measured: Measured) -> Iterable[Row]:
    fair, unfair = ["CUBIC", "H-TCP"], ["AIMD", "HSTCP"]
    for losses in (LOW, HIGH):
        found = ratio(_mean(measured, fair, losses), _mean(measured, unfair, losses))
        yield Row("poor", found, LOWER, ABOUT, losses)
    for losses in (LOW, HIGH):
        shares = ratio(_mean(measured, fair, losses, "jain"), _mean(measured, unfair, losses, "jain"))
        yield Row("fairness", shares, IMPROVED, NOT_WORSE, losses)


def _by_synchronisation(measured: Measured) -> Iterable[Row]:
    for variant in ("HSTCP", "AIMD"):
        found = ratio(_mean(measured, [variant], LOW), _mean(measured, [variant], HIGH))
        yield Row("desynchronised", found, IMPROVED, NOT_WORSE, variant)


def _mean(measured: Measured, variants: list[str], losses: str, measure: str = "utilisation") -> Values:
    """The mean over the variants and all buffers, for each seed; None if one of them was not run."""
    cases = [measured[f"{variant} {buffer} {losses}"] for variant in variants for buffer in BUFFERS]
    return tuple(None if None in seed else fmean(seed) for seed in zip(*(case[measure] for case in cases), strict=True))
