#!/usr/bin/env bash
# Says clearly what is missing before anything is built: Rust, Python ≥ 3.11 with venv.
#   need-toolchain.sh PYTHON
set -euo pipefail
python=$1

stop() {
    echo "$1" >&2
    exit 1
}

wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' "$(dirname "$0")/../Cargo.toml")
command -v cargo >/dev/null || stop "Rust is missing: install it with rustup (https://rustup.rs) or from packages, $wanted or newer."
rust=$(rustc --version | cut -d' ' -f2)
[[ $(printf '%s\n' "$wanted" "$rust" | sort -V | head -1) == "$wanted" ]] || stop "Rust $rust is too old: $wanted or newer is needed (rustup update)."

command -v "$python" >/dev/null || stop "$python is missing: install Python 3.11 or newer, or say which one: make PYTHON=/path/to/python3.12"
"$python" -c 'import sys; raise SystemExit(sys.version_info < (3, 11))' \
    || stop "$("$python" --version) is too old: 3.11 or newer is needed. Say which one to use: make PYTHON=/path/to/python3.12"
"$python" -c 'import ensurepip, venv' 2>/dev/null || stop "Python's venv module is missing. As root on Debian: apt-get install python3-venv"
