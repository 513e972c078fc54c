#!/bin/sh
# Usage: venv.sh PYTHON FOLDER LOCK
# Makes a virtual environment in FOLDER that holds what LOCK pins, every file checked by its hash.
set -eu
python=$1 folder=$2 lock=$3

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2> /dev/null || {
  echo "Python 3.11 or newer is needed, and \"$python\" is not one. Install it, or name one: make PYTHON=python3.12" >&2
  exit 1
}
if ! "$folder/bin/python" -m pip --version > /dev/null 2>&1; then
  rm -rf "$folder"
  # Debian packs venv's half apart from Python.
  "$python" -c 'import ensurepip, venv' 2> /dev/null || sh "$(dirname "$0")/system.sh" venv
  "$python" -m venv "$folder"
fi

# What builds the packages that come as source is pinned too: it is installed first, then used without isolation.
builders=$(mktemp)
trap 'rm -f "$builders"' EXIT
awk '/^[^ #]/ { keep = /^(packaging|pip|setuptools|wheel)==/ } keep' "$lock" > "$builders"
"$folder/bin/python" -m pip install --quiet --require-hashes -r "$builders"
"$folder/bin/python" -m pip install --quiet --no-compile --require-hashes --no-build-isolation -r "$lock"
# pip compiles one file after the other; this takes all processors. What is no Python of this version is left out.
"$folder/bin/python" -m compileall -q -j 0 "$folder"/lib/python*/site-packages > /dev/null 2>&1 || true
