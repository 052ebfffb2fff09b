#!/usr/bin/env python3
"""Rename keys, metrics and columns of format 4 to those of format 5, in scenarios and recorded tables.

    python tools/migrate_names.py PATH…     # TOML and CSV files, or folders of them; prints the files that change

The recorded results of the repository (`reproductions/*/*.csv`, `tests/agreement/data`) were migrated by it. A file in
format 5 stays as it is.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

#: Metrics and columns, which are whole words in tables.
COLUMNS = {
    "completion_mean_s": "fct_mean_s",
    "completion_p95_s": "fct_p95_s",
    "completion_km_mean_s": "fct_km_mean_s",
    "completion_km_median_s": "fct_km_median_s",
    "completion_syn_lost_s": "fct_syn_lost_s",
    "completion_syn_kept_s": "fct_syn_kept_s",
    "completion_s": "fct_s",
    "queue_empty_fraction": "queue_empty_share",
    "cwnd_high": "cwnd_peak",
    "cwnd_low": "cwnd_trough",
    "capture_lost": "not_captured",
    "lost_before": "lost_upstream",
    "limited_control_s": "limited_cwnd_s",
    "rtt_receiver_half_s": "rtt_receiver_side_s",
    "rtt_sender_half_s": "rtt_sender_side_s",
    "rtt_halves_min_s": "rtt_sides_min_s",
    "rtt_halves_mean_s": "rtt_sides_mean_s",
    "stood_still_s": "clock_stopped_s",
    "samples_left_out": "skipped_samples",
}

#: Keys of scenarios, as patterns of TOML and their replacements.
KEYS = {
    r'"in-turn"': '"round-robin"',
    r"\bleave(\s*=\s*(?:true|false))": r"existing_path\1",
    r"\bserve(\s*=)": r"app_interval\1",
    r'\b((?:reader|writer)\s*=\s*)"prompt"': r'\1"immediate"',
    r'\b((?:reader|writer)\s*=\s*)"lazy"': r'\1"periodic"',
    r"\bbatches(\s*=)": r"tso_batching\1",
    r'\breduction(\s*=\s*"(?:prr|immediate)")': r"recovery_reduction\1",
    r"\bundo(\s*=\s*(?:true|false))": r"undo_spurious\1",
    r"\bvictims(\s*=)": r"loss_assignment\1",
    r"\bby_rate(\s*=)": r"loss_rate_exponent\1",
    r"\bper_loss(\s*=)": r"loss_weight\1",
    r'\bwhole(\s*=\s*")': r"rounding\1",
    r'\bseen(\s*=\s*")': r"loss_detection\1",
    r'\bbeyond(\s*=\s*")': r"truncation\1",
    r"\bto_bad(\s*=)": r"p_good_to_bad\1",
    r"\bto_good(\s*=)": r"p_bad_to_good\1",
    r"\bcubic(\s*=\s*(?:true|false))": r"cubic_state\1",
    r"\bfollow(\s*=\s*\{[^}]*)\bleast\b([^}]*)\bmost\b": r"rate_adaptation\1min\2max",
}


def migrated(path: Path, text: str) -> str:
    """Return the text of a scenario (TOML) or of a recorded table (CSV) with the names of format 5."""
    if path.suffix == ".toml":
        for pattern, replacement in KEYS.items():
            text = re.sub(pattern, replacement, text)
    names = "|".join(COLUMNS)
    return re.sub(rf"\b(?:{names})\b", lambda match: COLUMNS[match[0]], text)


def files(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the TOML and CSV files among the paths and in folders."""
    for path in paths:
        yield from sorted([*path.rglob("*.toml"), *path.rglob("*.csv")]) if path.is_dir() else [path]


def main() -> None:
    """Migrate the files named on the command line."""
    for path in files(map(Path, sys.argv[1:])):
        before = path.read_text("utf-8")
        after = migrated(path, before)
        if after != before:
            path.write_text(after, "utf-8")
            print(path)


if __name__ == "__main__":
    main()
