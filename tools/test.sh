#!/usr/bin/env bash
# All tests but the long oracles: Rust, then Python; the last line sums them up.
#   test.sh PYTHON
set -uo pipefail
python=$1
log=$(mktemp)
trap 'rm -f "$log"' EXIT
started=$SECONDS
# What would make the next build of an edited crate quicker costs a fresh one a part of its time.
export CARGO_INCREMENTAL=${CARGO_INCREMENTAL:-0}

# Two calls, since one builds the examples as well: `make lint` sees that they compile, benchmarks and profiles run them.
rust=0
for kind in "--lib --tests" --doc; do
    cargo test --locked --no-fail-fast --workspace --exclude ackclock-python $kind 2>&1 | tee -a "$log"
    rust=$((rust + PIPESTATUS[0]))
done
# Without its default features this crate needs no Python library to link to.
cargo test --locked --package ackclock-python --no-default-features 2>&1 | tee -a "$log"
rust=$((rust + PIPESTATUS[0]))

# A test that hangs is named, and fails, long before whoever waits for all of them gives up.
"$python" -m pytest -n 2 -o faulthandler_timeout=900 -o faulthandler_exit_on_timeout=true
pytest=$?
[[ $pytest -eq 5 ]] && echo "No Python test was found: that counts as a failure." >&2

summary=$(awk '/^test result:/ { passed += $4; failed += $6 } END { printf "%d passed, %d failed", passed, failed }' "$log")
echo
[[ $rust -ne 0 && $summary == *" 0 failed" ]] && summary+=" (but something did not build: look for 'error')"
echo "Rust: $summary. Python: $([[ $pytest -eq 0 ]] && echo passed || echo "failed (exit $pytest)"). $((SECONDS - started)) s."
[[ $rust -eq 0 && $pytest -eq 0 ]]
