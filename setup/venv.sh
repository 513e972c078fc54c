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
parts=$(mktemp -d)
trap 'rm -rf "$parts"' EXIT
pip() {
  "$folder/bin/python" -m pip "$@"
}
install() {
  pip install --quiet --no-deps --no-compile --require-hashes --no-build-isolation -r "$1"
}
awk '/^[^ #]/ { keep = /^(packaging|pip|setuptools|uv|wheel)==/ } keep' "$lock" > "$parts/builders"
install "$parts/builders"

# uv, where a lock has it, takes seconds, and pip most of a minute; of pip's settings it is told where packages are.
by_uv() {
  test -x "$folder/bin/uv" || return 1
  index=${PIP_INDEX_URL:-$(pip config get global.index-url 2> /dev/null || true)}
  test -z "$index" || export UV_DEFAULT_INDEX="${UV_DEFAULT_INDEX:-$index}"
  "$folder/bin/uv" pip install --quiet --python "$folder/bin/python" --no-deps --require-hashes --no-build-isolation \
    -r "$lock"
}
# The lock names all that is needed, so each half is installed by itself, both at once: one pip takes one processor.
by_pip() {
  awk -v parts="$parts" '/^[^ #]/ { half = !half } { print > parts "/" (half ? "one" : "other") }' "$lock"
  install "$parts/one" &
  install "$parts/other" || { wait; exit 1; }
  wait $!
}
by_uv || by_pip
pip check
# pip compiles one file after the other; this takes all processors. What hardly anybody loads is left out, and what is
# no Python of this version is passed over.
seldom='/tests?/|/site-packages/(backrefs|fontTools|hive_metastore|matplotlib|mpl_toolkits|mypyc?|PIL|pip|setuptools|wcwidth)/'
seldom="$seldom|/site-packages/pygments/lexers/|/site-packages/moto/(?!core|moto_(api|server)|s3|settings|utilities)[a-z]"
"$folder/bin/python" -m compileall -q -j 0 -x "$seldom" "$folder"/lib/python*/site-packages > /dev/null 2>&1 || true
