#!/usr/bin/env bash
# Installs dist's wheel where there is Debian's Python and nothing else (no Rust, no compiler, no network) and runs a
# scenario there; then builds the sources of dist in an environment of their own.
#   try-wheel.sh PYTHON
set -euo pipefail
python=$(realpath --no-symlinks "$(command -v "$1")")
cd "$(dirname "$0")/.."
[[ $(id -u) == 0 ]] || { echo "make try-wheel makes a root of its own with debootstrap: run it as root" >&2; exit 1; }

place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
root=$place/root

"$python" -m pip download --dest "$place/wheels" dist/ackclock-*.whl
# From where this machine has its own packages.
read -r mirror suite < <(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Created-By: Packages' | awk '$2 !~ /-/' | sort -u)
debootstrap --variant=minbase --include=python3-venv "$suite" "$root" "$mirror" >"$place/debootstrap.log" \
    || { tail -5 "$place/debootstrap.log" >&2; exit 1; }
cp -r "$place/wheels" scenarios/dumbbell.toml "$root/srv"

inside() { unshare --net chroot "$root" /usr/bin/env -i PATH=/srv/venv/bin:/usr/bin:/bin HOME=/root "$@"; }
inside python3 -m venv /srv/venv
inside pip install --quiet --no-index --find-links /srv/wheels ackclock
inside sh -c '! command -v cargo && ! command -v gcc'
inside ackclock run /srv/dumbbell.toml --out /srv/demo
inside ackclock show cubic >/dev/null
inside ackclock check /srv/demo

"$python" -m venv "$place/venv"
"$place/venv/bin/pip" install --quiet dist/ackclock-*.tar.gz
(cd "$place" && venv/bin/ackclock --version && venv/bin/ackclock run root/srv/dumbbell.toml --no-report --out demo)
# The sources made what the wheel made.
# (the manifest and the report tell how the command was called)
diff --recursive --exclude=manifest.json --exclude=report.html "$root/srv/demo" "$place/demo"
echo 'the wheel installs and runs without Rust, the sources build, and both write the same bytes'
