#!/bin/sh
# Usage: UV=uv versions.sh PYTHON [OTHER...]
# Runs a few tests of every layer on other versions than those of the lock: on PYTHON with the lowest versions of
# everything that pyproject.toml allows, and on each OTHER Python with the lock's versions. Without OTHER, these are
# the allowed ones that are on the PATH.
set -eu
python=$1
shift
here=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
smoke="tests/adapter/test_surface.py tests/adapter/test_described_functions.py tests/adapter/test_read.py
  tests/catalog/test_database.py tests/cli/test_progress.py tests/cli/test_shell.py tests/cli/test_wheel.py
  tests/orchestration/test_kept_event_log.py"
# What the tests themselves need, at any version.
tools="hypothesis pip polars pytest pytest-timeout setuptools>=77 wheel"

# Runs the tests in an environment that has what the project needs.
run_smoke() {
  echo "== $1" >&2
  "$UV" pip install -q --compile-bytecode --python "$1/bin/python" --no-deps --no-build-isolation --editable .
  # shellcheck disable=SC2086
  "$1/bin/python" -m pytest -q -p no:cacheprovider -m "not deep" $smoke || failed="$failed $1"
}

failed=
if test $# = 0; then
  for version in 3.11 3.12 3.13 3.14; do
    test "$version" = "$here" || ! "python$version" -c '' 2> /dev/null || set -- "$@" "python$version"
  done
fi

mkdir -p .make/versions
"$UV" pip compile -q --resolution lowest-direct --python-version "$here" --no-header --no-annotate \
  --no-emit-index-url --extra postgres pyproject.toml -o .make/versions/lowest.txt
"$python" -m venv --clear .make/versions/lowest
# shellcheck disable=SC2086
"$UV" pip install -q --compile-bytecode --python .make/versions/lowest/bin/python -r .make/versions/lowest.txt $tools
run_smoke .make/versions/lowest

for other; do
  folder=.make/versions/$("$other" -c 'import sys; print("python%d.%d" % sys.version_info[:2])')
  "$other" -m venv --clear "$folder"
  "$UV" pip install -q --compile-bytecode --python "$folder/bin/python" --require-hashes -r requirements.lock
  run_smoke "$folder"
done
test -z "$failed" || { echo "failed:$failed" >&2; exit 1; }
