"""Join two captures of the same flows at two vantage points: losses by place, and one-way delays.

A packet is the same at both points if all that no hop changes is the same (`crates/ackclock-pcap`, `listing`); of
like ones the first is the first. What one point has and the other lacks was lost between, unless it is acknowledged
and no other copy came: then the other capture missed it. What may have been under way when a capture began or ended is
left out. What was lost before the first point or behind the second is in the analysis of each capture.

The clocks are related (`relate`) by packets that pass between them in both directions. Packets that go out take at
least some time, so the difference of the clocks lies below all of theirs, and above those of the packets that come
back. How it grows is the slope of the line below one cloud that is nearest to it in sum, a linear program (S. Moon, P.
Skelly, D. Towsley, *Estimation and Removal of Clock Skew from Network Delay Measurements*, INFOCOM 1999): of both
clouds that in which shortest delays differ less, as the other may have stood in a queue. Between lines of that slope
along both clouds the middle is the offset if the shortest delays are the same in both directions; whatever they are, it
is off by no more than half the room.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from ackclock import _core
from ackclock.capture import INTERVAL_S, STANDARD_INPUT, Captured
from ackclock.capture import read as read_capture
from ackclock.dataset import Dataset, Part, tables
from ackclock.errors import InputError
from ackclock.system.files import readable

#: Segments that are read at once.
AT_A_TIME = 1_000_000

#: Stretches of time of which the shortest delays relate the clocks.
STRETCHES = 500

#: Minimum share of the packets that two captures of the same flows have in common.
MIN_SHARE = 0.1

#: A packet, wherever it is captured.
PACKET = ("key", "copy")

#: From the first point to the second, and back.
OUT, BACK = True, False


@dataclass(frozen=True, slots=True)
class Joined:
    """Packets of both vantage points, and the relation of their clocks.

    `packets` has a row for each packet: `pair` of ends, `from_first` of them, `out` (it passes the first point first),
    `sequence`, `acknowledgement`, `payload_bytes`, and `ns_1`, `n_1`, `ns_2`, `n_2`: when and as which packet each
    point has it, null if not. `relation` is None where packets of one direction alone are seen.
    """

    paths: tuple[Path, Path]
    pairs: pl.DataFrame
    packets: pl.DataFrame
    relation: Relation | None


def read(
    first: Path | str, second: Path | str, expression: str = "", *, command: str | None = None, **options: Any
) -> Captured:
    """Analyse two captures of the same flows, in either order, as one: see `capture.read` for the rest.

    Tables and analysis are those of the capture that is nearer to the sender of most data, with the tables `delays` and
    `placed` and the answer `joined` besides. Raises `InputError` if a capture cannot be read, or nothing is in both.
    """
    if STANDARD_INPUT in (str(first), str(second)):
        raise InputError("--join: found standard input; expected two files, which are read twice")
    seen = [read_capture([path], expression, segments=True, command=command, **options) for path in (first, second)]
    joined = join(Path(first), Path(second), expression)
    if joined.paths[0] != Path(first):
        seen.reverse()
    near, far = seen
    placed = _placed(joined, near.data, far.data)
    delays = _delays(joined, near.data, options.get("interval_s", INTERVAL_S))
    analysis = {
        **near.analysis,
        "files": [*near.analysis["files"], *far.analysis["files"]],
        "joined": _joined_entry(joined, placed, are_known=all(map(_has_losses, seen))),
    }
    frames = {"placed": placed, "delays": delays}
    parts = {**near.data.parts, **{name: (Part(frame),) for name, frame in frames.items()}}
    manifest = {**near.data.manifest, "capture": analysis}
    return replace(
        near, data=replace(near.data, manifest=manifest, parts=parts), analysis=analysis, notes=near.notes + far.notes
    )


def join(first: Path, second: Path, expression: str = "") -> Joined:
    """Match the packets of two captures. The vantage point that most data pass first comes first."""
    both, packets = _matched(_listed(first, expression), _listed(second, expression))
    if _have_different_segments(packets):
        cut = _matched(_listed(first, expression, second), _listed(second, expression, first))
        both, packets = max((both, packets), cut, key=lambda matched: _common_bytes(matched[1]))
    in_both = packets.filter(pl.col("ns_1").is_not_null() & pl.col("ns_2").is_not_null()).height
    if not in_both:
        raise InputError(
            f"--join: found no packet that is in both {readable(first)} and {readable(second)}; expected two captures "
            "of the same flows"
        )
    if in_both < MIN_SHARE * packets.height:
        raise InputError(
            f"--join: of {packets.height:,} packets of the same connections {in_both:,} are in both "
            f"{readable(first)} and {readable(second)}; expected two captures of the same flows"
        )
    packets = packets.join(_directions(packets), on=["pair", "from_first"], maintain_order="left")
    data = packets.group_by("out").agg(pl.col("payload_bytes").sum())
    carried = dict(zip(data["out"], data["payload_bytes"], strict=True))
    paths = (first, second)
    if carried.get(BACK, 0) > carried.get(OUT, 0):
        packets = packets.rename({"ns_1": "ns_2", "n_1": "n_2", "ns_2": "ns_1", "n_2": "n_1"})
        packets, paths = packets.with_columns(~pl.col("out")), (second, first)
    return Joined(paths, both.select("pair", "first", "second"), packets, _relation(packets))


def _matched(
    listed: tuple[pl.DataFrame, pl.DataFrame], other: tuple[pl.DataFrame, pl.DataFrame]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the connections that both listings have, and a row for each packet of them."""
    (one, pairs), (two, others) = listed, other
    both = pairs.join(others.rename({"pair": "other"}), on=["first", "second"])
    one = one.filter(pl.col("pair").is_in(both["pair"].implode()))
    two = two.join(both.select(pair_1="pair", pair="other"), on="pair").drop("pair").rename({"pair_1": "pair"})
    shared = ("pair", "from_first", "sequence", "acknowledgement", "payload_bytes")
    packets = (
        one.rename({"time_ns": "ns_1", "n": "n_1"})
        .join(two.rename({"time_ns": "ns_2", "n": "n_2"}), on=PACKET, how="full", coalesce=True)
        .with_columns(pl.coalesce(name, f"{name}_right") for name in shared)
        .select(*shared, "ns_1", "n_1", "ns_2", "n_2")
        .sort("pair", "from_first", "n_1", "n_2")
    )
    return both, packets


def _have_different_segments(packets: pl.DataFrame) -> bool:
    """Return True if each capture has data that the other lacks: offloads may have merged its segments otherwise."""
    data = packets.filter(pl.col("payload_bytes") > 0)
    return all(data[f"ns_{point}"].null_count() for point in (1, 2))


def _common_bytes(packets: pl.DataFrame) -> int:
    """Return the bytes of data that both captures have."""
    return int(packets.drop_nulls(["ns_1", "ns_2"])["payload_bytes"].sum())


def _listed(path: Path, expression: str, other: Path | None = None) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the segments of a capture in order, numbered among identical ones, and its connections' ends.

    Super-segments are cut at the MSS, and where segments of the `other` capture begin.
    """
    listing = _core.Listing(path, expression, other=other)
    rows, pairs, more = [], [], True
    while more:
        more = listing.advance(AT_A_TIME)
        result = listing.drain()
        rows.append(pl.DataFrame(dict(result["listed"])))
        pairs.append(pl.DataFrame(dict(result["pairs"]), schema={"first": pl.String, "second": pl.String}))
    listed = pl.concat(rows).with_row_index("n").with_columns(pl.col("n", "time_ns").cast(pl.Int64))
    return listed.with_columns(copy=pl.int_range(pl.len()).over("key")), pl.concat(pairs).with_row_index("pair")


def _directions(packets: pl.DataFrame) -> pl.DataFrame:
    """Return the directions that pass the first point first: those whose clocks differ by more."""
    later = packets.group_by("pair", "from_first").agg(later=(pl.col("ns_2") - pl.col("ns_1")).median())
    other = later.select("pair", from_first=~pl.col("from_first"), other="later")
    both = later.join(other, on=["pair", "from_first"], how="left")
    same = (pl.col("later") == pl.col("other")) & pl.col("from_first")
    return both.select("pair", "from_first", out=((pl.col("later") > pl.col("other")) | same).fill_null(value=OUT))


def _relation(packets: pl.DataFrame) -> Relation | None:
    both = packets.drop_nulls(["ns_1", "ns_2"]).select("out", "ns_1", later=pl.col("ns_2") - pl.col("ns_1"))
    begin_ns, end_ns, base_ns = both.select(
        begin=pl.col("ns_1").min(), end=pl.col("ns_1").max(), base=pl.col("later").min()
    ).row(0)
    both = both.with_columns(stretch=(pl.col("ns_1") - begin_ns) * STRETCHES // max(1, end_ns - begin_ns))
    clouds = []
    for out in (OUT, BACK):
        shortest = pl.col("later").arg_min() if out else pl.col("later").arg_max()
        stretches = both.filter(pl.col("out") == out).group_by("stretch", maintain_order=True)
        rows = stretches.agg(pl.col("ns_1", "later").get(shortest))
        clouds.append(((rows["ns_1"] - begin_ns).to_numpy() * 1e-9, (rows["later"] - base_ns).to_numpy() * 1e-9))
    fine = both.select((pl.col("ns_1") % 1000 != 0).any() | (pl.col("later") % 1000 != 0).any()).item()
    try:
        result = relate(clouds[0], clouds[1], 1e-9 if fine else 1e-6)
    except ValueError:
        return None
    moved_s = result.reference_s + 1e-9 * begin_ns
    return replace(result, reference_s=moved_s, offset_s=result.offset_s + 1e-9 * base_ns)


def _missing(joined: Joined, *, out: bool) -> pl.DataFrame:
    """Return the packets that only one point has, with their `place`, without those in flight at the edges."""
    near, far = ("n_1", "n_2") if out else ("n_2", "n_1")
    rows = _with_start(joined.packets.filter(pl.col("out") == out))
    rows = rows.join(_under_way(rows, near[-1], far[-1]), on="pair", how="left")
    copies = pl.len().over("pair", "sequence", "payload_bytes")
    lost = rows.filter(
        pl.col(far).is_null() & ~((pl.col(near) > pl.col("last")) & (pl.col(f"ns_{near[-1]}") > pl.col("until")))
    )
    # A retransmission may have other boundaries: what matters is whether its bytes came.
    came = rows.filter(pl.col(far).is_not_null()).sort("start")
    came = came.select("pair", "start", end=(pl.col("start") + pl.col("payload_bytes")).cum_max().over("pair"))
    alone = (
        lost.filter(pl.col("payload_bytes") > 0)
        .sort("start")
        .join_asof(came, on="start", by="pair", check_sortedness=False)
    )
    alone = alone.filter(pl.col("end").is_null() | (pl.col("end") <= pl.col("start")))
    arrived = (
        alone.join(_acknowledged(joined, out=not out), on="pair")
        .filter((pl.col("acked") - pl.col("sequence").cast(pl.Int64) - pl.col("payload_bytes")) % 2**32 < 2**31)
        .filter(pl.int_range(pl.len()).over("pair", "sequence") == copies - 1)[near]
    )
    missed, other = ("missed_by_second", "missed_by_first") if out else ("missed_by_first", "missed_by_second")
    place = pl.when(pl.col(near).is_in(arrived.implode())).then(pl.lit(missed)).otherwise(pl.lit("between"))
    unseen = rows.filter(
        pl.col(near).is_null() & ~((pl.col(far) < pl.col("first")) & (pl.col(f"ns_{far[-1]}") < pl.col("since")))
    )
    return pl.concat([lost.with_columns(place=place), unseen.with_columns(place=pl.lit(other))])


def _with_start(rows: pl.DataFrame) -> pl.DataFrame:
    """Return the rows of one direction with the `start` of their data as a number that does not wrap."""
    rows = rows.sort(pl.coalesce("n_1", "n_2"))
    step = (pl.col("sequence").cast(pl.Int64).diff().fill_null(0) + 2**31) % 2**32 - 2**31
    return rows.with_columns(start=step.over("pair").cum_sum().over("pair"))


def _under_way(rows: pl.DataFrame, near: str, far: str) -> pl.DataFrame:
    """Return for each connection what may have been in flight when a capture began or ended.

    Sent behind the `last` that came and later than `until`; come before the `first` of which it is known when it was
    sent, and earlier than `since`.
    """
    longest = pl.col(f"ns_{far}") - pl.col(f"ns_{near}")
    begin_ns, end_ns = rows[f"ns_{near}"].min(), rows[f"ns_{far}"].max()
    both = rows.drop_nulls(["ns_1", "ns_2"]).group_by("pair")
    result = both.agg(longest=longest.max(), last=pl.col(f"n_{near}").max(), first=pl.col(f"n_{far}").min())
    if _overtaking(rows, f"n_{near}", f"n_{far}"):  # then order tells nothing
        result = result.with_columns(last=pl.lit(-1, pl.Int64), first=pl.lit(2**62, pl.Int64))
    return result.select("pair", "last", "first", until=end_ns - pl.col("longest"), since=begin_ns + pl.col("longest"))


def _acknowledged(joined: Joined, *, out: bool) -> pl.DataFrame:
    """Return the highest byte that a direction acknowledges, by connection."""
    rows = joined.packets.filter((pl.col("out") == out) & (pl.col("acknowledgement") > 0))
    number = pl.col("acknowledgement").cast(pl.Int64)
    ahead = (number - number.first() + 2**31) % 2**32 - 2**31
    order = pl.coalesce("n_1", "n_2")
    return rows.sort(order).group_by("pair").agg(acked=number.first() + ahead.max())


def _flow_of(joined: Joined, data: Dataset) -> pl.DataFrame:
    """Map each connection and sender of the join to the flow number in a capture's tables."""
    rows = data.frame("captured").select("flow", "connection", "client", "server").sort("connection")
    rows = rows.unique("connection", keep="first", maintain_order=True)
    ends = joined.pairs
    ways: list[tuple[str, str, bool]] = [("first", "second", True), ("second", "first", False)]
    result = []
    for client, server, is_first in ways:
        known = ends.join(rows, left_on=[client, server], right_on=["client", "server"])
        known = known.unique("pair", keep="first")
        for of_first in (True, False):
            number = 2 * pl.col("connection") + (0 if of_first == is_first else 1)
            result.append(known.select("pair", from_first=pl.lit(of_first), flow=number.cast(pl.UInt32)))
    return pl.concat(result)


def _origin_ns(joined: Joined) -> int:
    """Return when the nearer capture began: tables count from there."""
    return int(joined.packets["ns_1"].min())  # type: ignore[arg-type]


def _in_first_s(joined: Joined) -> pl.Expr:
    """Express a packet's time in seconds of the nearer capture."""
    origin_ns, relation = _origin_ns(joined), joined.relation
    other_s = (pl.col("ns_2") - origin_ns) * 1e-9
    if relation is not None:
        shift_s, slope = relation.offset_s, relation.drift
        other_s = other_s - shift_s - slope * (other_s + origin_ns * 1e-9 - shift_s - relation.reference_s)
    return pl.coalesce((pl.col("ns_1") - origin_ns) * 1e-9, other_s).alias("time_s")


def _placed(joined: Joined, near: Dataset, far: Dataset) -> pl.DataFrame:
    """Return each loss with its place."""
    flows = _flow_of(joined, near)
    missing = pl.concat([_missing(joined, out=out) for out in (OUT, BACK)]).join(flows, on=["pair", "from_first"])
    result = [missing.select(_in_first_s(joined), "flow", "place", "payload_bytes")]
    directions = joined.packets.select("pair", "from_first", "out").unique()
    points: list[tuple[Dataset, Literal["lost_upstream", "lost"], str, bool]] = [
        (near, "lost_upstream", "before", OUT),
        (far, "lost", "after", OUT),
        (near, "lost", "after", BACK),
        (far, "lost_upstream", "before", BACK),
    ]
    for data, fate, place, out in points:
        numbers = _flow_of(joined, data).rename({"flow": "own"}).join(directions, on=["pair", "from_first"])
        numbers = numbers.filter(pl.col("out") == out).join(flows, on=["pair", "from_first"])
        rows = data.scan("segments").filter(pl.col("fate") == fate).collect()
        rows = rows.rename({"flow": "own"}).join(numbers, on="own").with_columns(place=pl.lit(place))
        result.append(rows.select("time_s", "flow", "place", "payload_bytes"))
    return _as_table("placed", pl.concat(result, how="vertical_relaxed").sort("time_s", "flow", "place"))


def _as_table(name: str, rows: pl.DataFrame) -> pl.DataFrame:
    schema = tables.schema(name)
    return rows.with_columns(run=pl.lit(0, pl.UInt32)).select(pl.col(column).cast(schema[column]) for column in schema)


def _with_delays(joined: Joined) -> pl.DataFrame:
    """Return the packets that both points have, with `delay_s`; none if the clocks are unrelated."""
    both = joined.packets.drop_nulls(["ns_1", "ns_2"])
    relation = joined.relation
    if relation is None:
        return both.head(0).with_columns(delay_s=pl.lit(None, pl.Float64))
    base_ns = round(1e9 * relation.offset_s)
    reference_ns = round(1e9 * relation.reference_s)
    own_s = (pl.col("ns_2") - pl.col("ns_1") - base_ns) * 1e-9
    later_s = own_s - relation.drift * (pl.col("ns_1") - reference_ns) * 1e-9
    return both.with_columns(delay_s=pl.when(pl.col("out")).then(later_s).otherwise(-later_s))


def _delays(joined: Joined, near: Dataset, interval_s: float) -> pl.DataFrame:
    """Return one-way delays of each flow, a row for each interval."""
    rows = _with_delays(joined).join(_flow_of(joined, near), on=["pair", "from_first"])
    time_s = interval_s * (_in_first_s(joined) / interval_s).ceil()
    delay_s = pl.col("delay_s")
    sampled = rows.group_by(time_s.alias("time_s"), "flow").agg(
        packets=pl.len(), delay_min_s=delay_s.min(), delay_mean_s=delay_s.mean(), delay_max_s=delay_s.max()
    )
    error_s = joined.relation.error_s if joined.relation else None
    return _as_table("delays", sampled.with_columns(error_s=pl.lit(error_s, pl.Float64)).sort("time_s", "flow"))


def _has_losses(seen: Captured) -> bool:
    """Return True if a capture has the data of its connections, and not the acknowledgements only."""
    return all(flow["segments_lost"] is not None for flow in seen.analysis["flows"])


def _joined_entry(joined: Joined, placed: pl.DataFrame, *, are_known: bool) -> dict[str, Any]:
    """Return the entry `joined` of the analysis; what was lost of the data is None if that is not known."""
    relation = joined.relation
    drift = relation if relation and math.isfinite(relation.drift_error) else None
    data = pl.col("payload_bytes") > 0
    between = placed.filter(pl.col("place") == "between")
    delays = _with_delays(joined)
    counts = dict(placed.group_by("place").len().iter_rows())
    return {
        "first": str(joined.paths[0]),
        "second": str(joined.paths[1]),
        "packets": joined.packets.drop_nulls(["ns_1", "ns_2"]).height,
        "offset_s": relation and relation.offset_s,
        "offset_error_s": relation and relation.error_s,
        "drift_ppm": drift and 1e6 * drift.drift,
        "drift_error_ppm": drift and 1e6 * drift.drift_error,
        "segments_lost_before": counts.get("before", 0) if are_known else None,
        "segments_lost_between": between.filter(data).height if are_known else None,
        "acks_lost_between": between.filter(~data).height,
        "segments_lost_after": counts.get("after", 0) if are_known else None,
        "missed_by_first": counts.get("missed_by_first", 0),
        "missed_by_second": counts.get("missed_by_second", 0),
        "unresolved": _unmatched(joined) - placed.filter(~pl.col("place").is_in(["before", "after"])).height,
        "reordered": sum(_reordered(joined)),
        "delay_forward_s": _summary(delays.filter(pl.col("out"))["delay_s"]),
        "delay_back_s": _summary(delays.filter(~pl.col("out"))["delay_s"]),
    }


def _unmatched(joined: Joined) -> int:
    """Count the packets that only one point has."""
    return joined.packets.filter(pl.col("ns_1").is_null() | pl.col("ns_2").is_null()).height


def _reordered(joined: Joined) -> Iterator[int]:
    """Count for each direction the packets that arrive after one sent later (RFC 4737)."""
    for near, far, out in (("n_1", "n_2", OUT), ("n_2", "n_1", BACK)):
        yield _overtaking(joined.packets.filter(pl.col("out") == out), near, far)


def _overtaking(rows: pl.DataFrame, near: str, far: str) -> int:
    """Count the packets of one direction that arrive after one sent later."""
    rows = rows.drop_nulls([near, far]).sort(far)
    return rows.filter(pl.col(near) < pl.col(near).cum_max().over("pair")).height


def _summary(delays_s: pl.Series) -> Mapping[str, float] | None:
    if not len(delays_s):
        return None
    names: Sequence[tuple[str, Any]] = (
        ("min", delays_s.min()),
        ("mean", delays_s.mean()),
        ("p95", delays_s.quantile(0.95)),
        ("max", delays_s.max()),
    )
    return {name: float(value) for name, value in names}


Floats: TypeAlias = npt.NDArray[np.float64]

#: Microseconds in a second: the linear program's unit, far from its tolerance.
US = 1e6

#: Fewest stretches of time from whose shortest delays a drift is estimated.
MIN_STRETCHES = 10


@dataclass(frozen=True, slots=True)
class Relation:
    """Offset of the second clock from the first at `reference_s` of the first, its drift, and their errors.

    `error_s` is a bound, whatever the delays are. `drift_error` comes from how much the shortest delays differ from one
    stretch of time to the next. Directions with fewer than `MIN_STRETCHES` of them give no drift: it is 0 then, with an
    infinite error.
    """

    reference_s: float
    offset_s: float
    error_s: float
    drift: float
    drift_error: float

    def at(self, time_s: Floats) -> Floats:
        """Return the offset of the second clock at times of the first."""
        return self.offset_s + self.drift * (time_s - self.reference_s)


def relate(out: tuple[Floats, Floats], back: tuple[Floats, Floats], tick_s: float) -> Relation:
    """Estimate the relation of two clocks.

    Both directions have times of the first clock and the second clock less the first, of the shortest delays of
    stretches of time; `tick_s` is what the clocks resolve. Raises `ValueError` if a direction has nothing.
    """
    (out_s, above_s), (back_s, below_s) = out, back
    if not len(out_s) or not len(back_s):
        raise ValueError("packets pass in one direction only; expected both")
    every_s = np.concatenate([out_s, back_s])
    middle_s, span_s = float(every_s.min() + every_s.max()) / 2, max(float(np.ptp(every_s)), 1e-9)
    base_s = float(above_s.min())
    clouds = [
        ((out_s - middle_s) / span_s, US * (above_s - base_s)),
        ((back_s - middle_s) / span_s, US * (base_s - below_s)),
    ]
    noise, slope = math.inf, 0.0
    for sign, (x, y) in zip((1.0, -1.0), clouds, strict=True):
        if len(x) >= MIN_STRETCHES:
            noise, slope = min((noise, slope), _below(x, y, sign), key=lambda found: found[0])
    high = float((clouds[0][1] - slope * clouds[0][0]).min())
    low = -float((clouds[1][1] + slope * clouds[1][0]).min())
    return Relation(
        reference_s=middle_s,
        offset_s=base_s + (high + low) / 2 / US,
        error_s=abs(high - low) / 2 / US + tick_s,
        drift=slope / US / span_s,
        drift_error=2 * (noise / US + tick_s) / span_s,
    )


def _below(x: Floats, y: Floats, sign: float) -> tuple[float, float]:
    """Return how far points typically lie above the line below the cloud, and the slope of that line times a sign."""
    from scipy.optimize import linprog

    centre = float(x.mean())
    result = linprog([-1.0, 0.0], A_ub=np.column_stack([np.ones_like(x), x - centre]), b_ub=y, bounds=(None, None))
    height, slope = result.x if result.x is not None else (float(y.min()), 0.0)  # None: all at one instant
    return float(np.median(y - height - slope * (x - centre))), sign * float(slope)
