#!/usr/bin/env bash
# Makes sure that commands or files exist, and installs their Debian packages if it may.
#   need-debian.sh COMMAND=PACKAGE…      a COMMAND with a slash is a file that must exist
# Exit status 1, with the command to type, if something is missing and cannot be installed here.
set -euo pipefail

present() {
    if [[ $1 == */* ]]; then [[ -e $1 ]]; else command -v "$1" >/dev/null; fi
}

missing=()
for pair in "$@"; do
    present "${pair%%=*}" || missing+=("${pair#*=}")
done
[[ ${#missing[@]} -eq 0 ]] && exit 0

reject() {
    echo "Missing: ${missing[*]}. $1" >&2
    echo "As root on Debian: apt-get install ${missing[*]}" >&2
    exit 1
}

command -v apt-get >/dev/null || reject "This system has no apt-get: install them by its own means."
become=()
if [[ $(id -u) -ne 0 ]]; then
    sudo -n true 2>/dev/null || reject "Installing them needs root."
    become=(sudo -n)
fi

echo "Installing from Debian: ${missing[*]}" >&2
# Another apt may hold the lock, such as unattended upgrades: wait for it.
apt=("${become[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=300)
# `update` has a lock of its own, for which apt-get does not wait.
update() {
    local tries
    for tries in {1..30}; do
        "${apt[@]}" update >/dev/null 2>"$log" && return
        grep -q 'Could not get lock' "$log" || break
        [[ $tries -eq 1 ]] && echo "Waiting for another apt-get, up to 5 minutes." >&2
        sleep 10
    done
    cat "$log" >&2
    return 1
}
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install=("${apt[@]}" install -y --no-install-recommends "${missing[@]}")
if ! "${install[@]}" >/dev/null 2>&1; then
    update || reject "The package lists could not be updated."
    "${install[@]}" >/dev/null || reject "apt-get could not install them."
fi
