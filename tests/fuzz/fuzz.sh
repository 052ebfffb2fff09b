#!/usr/bin/env bash
# Fuzzes one reader, guided by coverage; what is found is kept in results/fuzz-READER.
#   fuzz.sh READER SECONDS PYTHON
set -euo pipefail
reader=$1 seconds=$2 python=$3
crate=crates/ackclock-analysis

if [[ $reader != files && $reader != segments ]]; then
    exec "$python" -W ignore tests/fuzz/fuzz.py "$reader" --seconds "$seconds"
fi
if ! cargo +nightly fuzz --version >/dev/null 2>&1; then
    echo "make fuzz READER=$reader needs a nightly compiler and cargo-fuzz: rustup toolchain install nightly && cargo install cargo-fuzz --locked" >&2
    exit 1
fi
found=$PWD/results/fuzz-$reader
mkdir -p "$found/corpus" "$found/findings"
seeds=()
[[ $reader == files ]] && for folder in crates/ackclock-pcap/tests/data/*/; do seeds+=("$folder"); done
# No part of it is unsafe, so there is nothing for a sanitizer to see.
exec cargo +nightly fuzz run --fuzz-dir "$crate/fuzz" --sanitizer none --target-dir target/fuzz "$reader" \
    "$found/corpus" ${seeds[@]+"${seeds[@]}"} -- -artifact_prefix="$found/findings/" -max_total_time="$seconds" \
    -max_len=65536 -timeout=20 -rss_limit_mb=1024
