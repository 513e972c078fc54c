#!/bin/sh
# Usage: system.sh java|jdk|node|postgres|venv|chromium|go
# Checks for a program that Python's packages do not bring, installs it with apt where that is possible, and otherwise
# says what to do.
set -eu

java_is_there() {
  java=java
  test -z "${JAVA_HOME:-}" || java=$JAVA_HOME/bin/java
  version=$("$java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1)
  test "${version:-0}" -ge 17
}

jdk_is_there() {
  java=java
  test -z "${JAVA_HOME:-}" || java=$JAVA_HOME/bin/java
  "$java" --list-modules 2> /dev/null | grep -q '^jdk.compiler'
}

node_is_there() {
  node --version > /dev/null 2>&1 && npm --version > /dev/null 2>&1
}

postgres_is_there() {
  test -x /usr/lib/postgresql/15/bin/initdb
}

venv_is_there() {
  python3 -c 'import ensurepip, venv' 2> /dev/null
}

chromium_is_there() {
  test -x /usr/bin/chromium-headless-shell
}

go_is_there() {
  minor=$(go version 2> /dev/null | sed -n 's/.* go1\.\([0-9]*\).*/\1/p')
  test "${minor:-0}" -ge 21
}

case $1 in
  java) wanted="Java 17 or newer" packages=openjdk-17-jre-headless ;;
  jdk) wanted="Java with its compiler (for tests: pgjdbc)" packages=openjdk-17-jdk-headless ;;
  node) wanted="node and npm (for tests: node's pg)" packages="nodejs npm" ;;
  postgres) wanted="PostgreSQL 15 (for tests: the referee of SQL's semantics)" packages="postgresql-15 postgresql-client-15" ;;
  venv) wanted="Python's venv module" packages=python3-venv ;;
  go) wanted="Go 1.21 or newer (for deep tests: versitygw, a gateway to S3)" packages=golang-go ;;
  chromium) wanted="Chromium (for tests of what Dagster's UI shows)" packages=chromium-headless-shell ;;
  *) echo "unknown program \"$1\"" >&2; exit 2 ;;
esac

"${1}_is_there" && exit 0

if test "$(id -u)" = 0; then
  as_root=
elif command -v sudo > /dev/null && sudo -n true 2> /dev/null; then
  as_root="sudo -n"
else
  as_root=no
fi
if test "$as_root" != no && command -v apt-get > /dev/null; then
  echo "Installing $wanted: apt-get install $packages" >&2
  # Runlevel 1: nothing that is installed here may start a service.
  apt="$as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get -qq -o DPkg::Lock::Timeout=120"
  # Several of us may run at once; apt's own wait is not for its lists.
  mkdir -p .make
  exec 9> .make/apt.lock
  ! command -v flock > /dev/null || flock 9
  { $apt update && $apt install -y --no-install-recommends $packages; } > /dev/null 9>&- || true
  exec 9>&-
  "${1}_is_there" && exit 0
fi
echo "$wanted is needed and could not be installed here. On Debian, as root: apt-get install $packages" >&2
if test "$1" = go; then
  echo "An older Debian has an older one: install that of go.dev and put it on the PATH." >&2
fi
if test "$1" = java; then
  echo "Elsewhere install any Java 17 or newer and put it on the PATH, or set JAVA_HOME." >&2
fi
exit 1
