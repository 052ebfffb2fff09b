"""Datasets made by hand, so that tests know the truth."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ackclock.dataset import Dataset, Spool
from ackclock.dataset.tables import EVENT_KINDS

NAMES = {"events.kind": EVENT_KINDS}
MSS = 1448
WIRE = 1514


def plan(*, rate_bps: float, duration_s: float, warmup_s: float = 0.0, **more: Any) -> dict[str, Any]:
    """The parts of a plan that views read."""
    link = {
        "name": "bottleneck",
        "rate_bps": rate_bps,
        "bottleneck": True,
        "burst_bytes": None,
        "frame_overhead_bytes": WIRE - 1500,
        "queue": {"discipline": "pfifo", "parameters": {"limit_packets": int(rate_bps * 0.1 / 8 / WIRE)}},
    }
    common = {"name": "made by hand", "duration_s": duration_s, "warmup_s": warmup_s, "links": [link]}
    return {**common, "mean_base_rtt_s": 0.1, "packet_bytes": 1514, "bottleneck": 0, **more}


def manifest(plan: Mapping[str, Any], seeds: Sequence[int] = (1,), **more: Any) -> dict[str, Any]:
    """A manifest with one run a seed."""
    runs = [{"run": number, "point": 0, "seed": seed} for number, seed in enumerate(seeds)]
    return {
        "ackclock": "0.1.0",
        "engine": "packet",
        "scenario": f'name = "{plan["name"]}"\nduration = "{plan["duration_s"]}s"\n',
        "scenario_path": "by-hand.toml",
        "plan": dict(plan),
        "runs": runs,
        "versions": {"python": "3.11.7"},
        "created": "2025-01-01T00:00:00Z",
        "platform": "Linux",
        "command": "ackclock run by-hand.toml",
        **more,
    }


def dataset(plan: Mapping[str, Any], tables: Mapping[str, Mapping[str, Any]], seed: int = 1) -> Dataset:
    """One run with the given columns."""
    spool = Spool(names=NAMES)
    for table, columns in tables.items():
        spool.append(table, columns)
    return spool.dataset(manifest(plan, (seed,)))


def flows(count: int, **columns: Any) -> dict[str, Any]:
    """The `flows` columns of `count` endless CUBIC flows with a base RTT of 100 ms, and what else is given."""
    common = {"flow": np.arange(count, dtype=np.uint32), "group": np.zeros(count, np.uint32)}
    usual = {"congestion": ["cubic"] * count, "start_s": np.zeros(count), "base_rtt_s": np.full(count, 0.1)}
    return {**common, **usual, **columns}


def link(**columns: Any) -> dict[str, Any]:
    """The `links` columns of one bottleneck of 10 Mb/s, and what else is given (scalars)."""
    row = {"link": 0, "name": "bottleneck", "bottleneck": True, "rate_bps": 1e7, **columns}
    return {name: [value] for name, value in row.items()}


def drops(times_s: Sequence[float], of_flows: Sequence[int], link: int = 0) -> dict[str, Any]:
    """The `events` columns of drops."""
    count = len(times_s)
    return {
        "time_s": np.asarray(times_s, dtype=float),
        "flow": np.asarray(of_flows, dtype=np.uint32),
        "link": np.full(count, link, dtype=np.uint32),
        "kind": np.zeros(count, dtype=np.uint8),
    }


def samples(times_s: np.ndarray, **matrices: np.ndarray) -> dict[str, Any]:
    """The `flow_samples` columns of matrices (times × flows)."""
    count = next(iter(matrices.values())).shape[1]
    columns = {name: matrix.reshape(-1) for name, matrix in matrices.items()}
    return {
        "time_s": np.repeat(times_s, count),
        "flow": np.tile(np.arange(count, dtype=np.uint32), times_s.size),
        **columns,
    }


def transfers(
    count: int = 300, seeds: int = 2, duration_s: float = 30.0, warmup_s: float = 5.0, *, sampled: bool = False
) -> Dataset:
    """Transfers of 10 kB, 100 kB and 1 MB in turn, spread over the run, at a rate that differs from seed to seed."""
    made = plan(rate_bps=1e8, duration_s=duration_s, warmup_s=warmup_s)
    return Dataset.concat([_transfers_run(made, count, seed, sampled) for seed in range(1, seeds + 1)])


def _transfers_run(made: Mapping[str, Any], count: int, seed: int, sampled: bool) -> Dataset:
    sizes = np.resize([10_000, 100_000, 1_000_000], count)
    starts = np.linspace(0, made["duration_s"], count, endpoint=False)
    times = 0.2 + sizes * 8 / (2e6 + 1e5 * seed)
    done = starts + times <= made["duration_s"]
    columns = {
        "start_s": starts,
        "size_bytes": sizes.astype(np.uint64),
        "fct_s": np.where(done, times, np.nan),
        "measured_bytes": np.where(done, sizes, 0).astype(np.uint64),
        "delivered_bytes": np.where(done, sizes, 0).astype(np.uint64),
        "syn_retransmissions": np.zeros(count, np.uint64),
    }
    tables = {"flows": flows(count, **columns), "links": link(rate_bps=1e8, departed_bytes=int(1e8))}
    if sampled:
        early, late = starts + 0.01, np.minimum(starts + times, made["duration_s"])
        tables["flow_samples"] = {
            "time_s": np.append(early, late),
            "flow": np.tile(np.arange(count, dtype=np.uint32), 2),
            "cwnd": np.full(2 * count, 10.0),
            "srtt_s": np.full(2 * count, 0.1),
            "delivered_bytes": np.append(np.zeros(count), sizes),
        }
    return dataset(made, tables, seed)


def sawtooth(
    *, flow_count: int = 10, seeds: int = 5, duration_s: float = 60.0, warmup_s: float = 10.0, step_s: float = 0.01
) -> Dataset:
    """CUBIC-like flows in one 100 Mb/s, 100 ms, 1 BDP bottleneck: a picture's worth of data, not a simulation."""
    made = [_sawtooth_run(flow_count, seed, duration_s, warmup_s, step_s) for seed in range(1, seeds + 1)]
    return Dataset.concat(made)


def _sawtooth_run(count: int, seed: int, duration_s: float, warmup_s: float, step_s: float) -> Dataset:
    rng = np.random.default_rng(seed)
    rate_bps, base_s = 1e8, 0.1
    pipe_p = rate_bps * base_s / 8 / WIRE
    times = np.arange(1, round(duration_s / step_s) + 1) * step_s
    start = np.arange(count) * 0.1 * 10 / count + rng.uniform(0, 0.05, count)
    epoch, peak = start.copy(), np.full(count, pipe_p / count)
    cwnd, srtt = np.full((times.size, count), np.nan), np.full((times.size, count), np.nan)
    delivered, backlog = np.zeros((times.size, count)), np.zeros(times.size)
    lost: list[tuple[float, int]] = []
    sent = np.zeros(count)
    pending: list[tuple[float, int]] = []
    for row, now in enumerate(times):
        on = now > start
        k = np.cbrt(np.maximum(peak * 0.3 / 0.4, 0))
        window = np.where(on, np.maximum(2, 0.4 * (now - epoch - k) ** 3 + peak), 0)
        for _, flow in [item for item in pending if item[0] <= now]:
            peak[flow], epoch[flow] = window[flow], now
            window[flow] *= 0.7
        pending = [item for item in pending if item[0] > now]
        queue = min(max(window.sum() - pipe_p, 0), pipe_p)
        if window.sum() > 2 * pipe_p and not pending:
            hit = [int(flow) for flow in np.flatnonzero(on) if rng.random() < 0.75] or [int(np.flatnonzero(on)[0])]
            for flow in hit:
                pending.append((now + 0.2, flow))
                lost += [(now + rng.uniform(0, 0.15), flow) for _ in range(1 + rng.poisson(2))]
        rtt = base_s + queue * WIRE * 8 / rate_bps
        share = window / max(window.sum(), pipe_p) * rate_bps / 8 / WIRE * step_s
        sent += share
        delivered[row] = np.floor(sent) * MSS
        cwnd[row], srtt[row], backlog[row] = np.where(on, window, np.nan), np.where(on, rtt, np.nan), queue
    curves = (times, cwnd, srtt, delivered, backlog)
    return _as_dataset(curves, sorted(lost), start, seed, (duration_s, warmup_s))


def _as_dataset(
    curves: tuple[np.ndarray, ...],
    lost: list[tuple[float, int]],
    start: np.ndarray,
    seed: int,
    span: tuple[float, float],
) -> Dataset:
    times, cwnd, srtt, delivered, backlog = curves
    duration_s, warmup_s = span
    rate_bps, step_s, count = 1e8, times[1] - times[0], cwnd.shape[1]
    measured = times >= warmup_s
    got = delivered[-1] - delivered[np.flatnonzero(measured)[0] - 1]
    sojourn = backlog * WIRE * 8 / rate_bps
    departures = np.full(times.size, rate_bps / 8 / WIRE * step_s)
    ks, counts = np.unique(np.ceil(sojourn[measured] / 1e-3), return_counts=True)
    hits = np.array([event[0] for event in lost])
    made = plan(rate_bps=rate_bps, duration_s=duration_s, warmup_s=warmup_s)
    made["name"] = f"{count} CUBIC flows through one bottleneck"
    dropped = int((hits >= warmup_s).sum())
    departed = int(departures[measured].sum())
    retransmitted = np.bincount([flow for _, flow in lost], minlength=count)
    tables = {
        "flows": flows(
            count,
            start_s=start,
            source=[f"sender-{k}" for k in range(count)],
            destination=[f"receiver-{k}" for k in range(count)],
            measured_bytes=got.astype(np.uint64),
            delivered_bytes=delivered[-1].astype(np.uint64),
            sent_packets=(delivered[-1] / MSS).astype(np.uint64) + retransmitted.astype(np.uint64),
            retransmissions=retransmitted.astype(np.uint64),
            timeouts=np.zeros(count, np.uint64),
            measured_sent_packets=(got / MSS).astype(np.uint64),
            measured_retransmissions=retransmitted.astype(np.uint64),
            measured_timeouts=np.zeros(count, np.uint64),
        ),
        "flow_samples": samples(
            times,
            cwnd=np.floor(cwnd),
            ssthresh=np.full(cwnd.shape, math.inf),
            srtt_s=srtt,
            in_flight=np.floor(cwnd),
            delivered_bytes=delivered,
        ),
        "queue_samples": _queue_samples(times, backlog, sojourn, departures, hits),
        "events": drops(list(hits), [flow for _, flow in lost]),
        "links": link(
            rate_bps=rate_bps,
            arrived_p=departed + dropped,
            dropped_p=dropped,
            lost_p=0,
            departed_p=departed,
            departed_bytes=departed * WIRE,
            empty_s=float((backlog[measured] == 0).mean() * (duration_s - warmup_s)),
            backlog_mean_p=float(backlog[measured].mean()),
            sojourn_mean_s=float(sojourn[measured].mean()),
            sojourn_max_s=float(sojourn.max()),
            sojourn_edges_s=list(ks * 1e-3),
            sojourn_counts=[int(c) for c in counts * departures[0]],
        ),
    }
    return dataset(made, tables, seed)


def _queue_samples(
    times: np.ndarray, backlog: np.ndarray, sojourn: np.ndarray, departures: np.ndarray, hits: np.ndarray
) -> dict[str, np.ndarray]:
    return {
        "time_s": times,
        "link": np.zeros(times.size, np.uint32),
        "backlog_p": np.floor(backlog),
        "backlog_bytes": np.floor(backlog) * WIRE,
        "sojourn_s": sojourn,
        "departures_p": departures.astype(np.uint64),
        "drops_p": np.histogram(hits, np.append(0, times))[0].astype(np.uint64),
        "utilisation": np.full(times.size, 0.997),
    }


def unplanned(duration_s: float = 10.0, **more: Any) -> Dataset:
    """Two flows as a capture has them: nobody planned them, and no link, window, seed or end of the run is known.

    The first starts at 0.5 s and takes 1 Mb/s until the last sample at `duration_s`, the second is a transfer of 500 kB
    at 0.5 Mb/s from 1 s to 9 s. `more` goes into the manifest.
    """
    times_s = np.arange(1, round(10 * duration_s) + 1) / 10
    first, second = 125e3 * np.maximum(times_s - 0.5, 0), 62.5e3 * np.clip(times_s - 1, 0, 8)
    both = np.column_stack([first, second]).astype(np.uint64)
    rows = {
        "flows": {
            "flow": np.arange(2, dtype=np.uint32),
            "group": np.zeros(2, np.uint32),
            "congestion": ["unknown"] * 2,
            "source": ["10.0.0.1:5001", "10.0.0.2:5001"],
            "start_s": np.array([0.5, 1.0]),
            "end_s": np.array([math.nan, 9.0]),
            "fct_s": np.array([math.nan, 8.0]),
            "size_bytes": [None, 500_000],
        },
        "flow_samples": samples(times_s, srtt_s=np.full(both.shape, 0.05), delivered_bytes=both),
        "events": {
            "time_s": np.array([3.0, 7.0]),
            "flow": np.array([0, 1], np.uint32),
            "kind": np.full(2, EVENT_KINDS.index("retransmission"), np.uint8),
        },
    }
    spool = Spool(names=NAMES)
    for table, columns in rows.items():
        spool.append(table, columns)
    return spool.dataset({"ackclock": "0.1.0", "runs": [{"run": 0}], **more})
