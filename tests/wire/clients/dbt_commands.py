"""Runs dbt's `debug`, `seed` and `run` of a project, the latter again and from anew; prints a line for each."""

from __future__ import annotations

import sys

if __name__ == "__main__":  # dbt starts processes that import this
    from dbt.cli.main import dbtRunner  # type: ignore[import-not-found]

    for command in (["debug"], ["seed"], ["run"], ["seed"], ["run"], ["seed", "--full-refresh"], ["run"]):
        done = dbtRunner().invoke([*command, "--project-dir", sys.argv[1], "--profiles-dir", sys.argv[1], "--quiet"])
        print("OK" if done.success else "ERR", *command, done.exception or "")
        if not done.success:
            print(*(one.message for one in getattr(done.result, "results", ())), sep="\n", file=sys.stderr)
