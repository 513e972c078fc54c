"""`mz-dagster import`: queries of elsewhere, and dbt's tests."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from mz_dagster.cli.tables import print_table
from mz_dagster.errors import ProgrammingError

if TYPE_CHECKING:
    import argparse

    from mz_dagster.adapter import Project


def import_queries(project: Project, path: Path, options: argparse.Namespace) -> int:
    """Imports queries; returns the status that the command ends with."""
    from mz_dagster.operations.importing import compared, notes, propose, read_models, report, summary, write
    from mz_dagster.sql.translation import SourceDialect

    models = read_models(path)
    name = options.dialect or models.dialect
    if name is None:
        raise ProgrammingError("--dialect is missing", hint="Say what the queries are written in: --dialect spark.")
    dialect = SourceDialect.named(name)
    proposal = propose(project, models, dialect)
    if options.check:
        proposal = compared(project, proposal, dialect)
    if not options.dry_run:
        write(proposal)
    if options.format == "json":
        print(json.dumps(report(proposal), indent=2, ensure_ascii=False))
    else:
        print_table(*summary(proposal))
        for line in notes(proposal):
            print(f"\n{line}")
    return 0 if proposal.is_whole else 1


def import_tests(project: Project, path: Path, options: argparse.Namespace) -> int:
    """Imports dbt's tests; returns the status that the command ends with."""
    from mz_dagster.operations.importing import propose_checks, write_checks

    proposal = propose_checks(project, path)
    if not options.dry_run:
        write_checks(proposal)
    if options.format == "json":
        print(json.dumps({"tests": [asdict(one) for one in proposal.tests]}, indent=2, ensure_ascii=False))
    else:
        rows = [(one.on, one.test, one.outcome, one.check, one.file) for one in proposal.tests]
        print_table(("of", "test", "outcome", "check", "file"), rows)
        for one in proposal.tests:
            if one.reason is not None:
                print(f"\nleft out: {one.test} of {one.on} ({one.place})\n    {one.reason}")
    return 0 if proposal.is_whole else 1
