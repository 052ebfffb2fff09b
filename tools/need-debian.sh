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

refuse() {
    echo "Missing: ${missing[*]}. $1" >&2
    echo "As root on Debian: apt-get install ${missing[*]}" >&2
    exit 1
}

command -v apt-get >/dev/null || refuse "This system has no apt-get: install them by its own means."
become=()
if [[ $(id -u) -ne 0 ]]; then
    sudo -n true 2>/dev/null || refuse "Installing them needs root."
    become=(sudo -n)
fi

echo "Installing from Debian: ${missing[*]}" >&2
install=("${become[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}")
if ! "${install[@]}" >/dev/null 2>&1; then
    "${become[@]}" apt-get update -q >/dev/null || refuse "The package lists could not be updated."
    "${install[@]}" >/dev/null || refuse "apt-get could not install them."
fi
