"""Import: the queries that a team has elsewhere, as files of this project.

Owns what `mz-dagster import` does. Its invariant: a file is written only if the project loads with it, and holds a
query whole; whatever is not written is told with its reason, and nothing that is there is overwritten.

- `models`: queries in files of SQL, and in dbt's compiled project by its manifest, in one form;
- `naming`: what each relation is called here;
- `proposal`: the files that would be written, held against the project's own;
- `dbt_tests`: dbt's tests, as checks;
- `comparison`: the originals and their translations run on the same data;
- `report`: what became of everything.
"""

from mz_dagster.operations.importing.comparison import compared
from mz_dagster.operations.importing.dbt_tests import CheckProposal, propose_checks, write_checks
from mz_dagster.operations.importing.models import NothingToImport, read_models
from mz_dagster.operations.importing.proposal import Imported, Proposal, propose, write
from mz_dagster.operations.importing.report import notes, report, summary

__all__ = [
    "CheckProposal",
    "Imported",
    "NothingToImport",
    "Proposal",
    "compared",
    "notes",
    "propose",
    "propose_checks",
    "read_models",
    "report",
    "summary",
    "write",
    "write_checks",
]
