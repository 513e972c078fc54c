"""Queries are read alike beside sqlglot's compiled build, which other packages install, and without it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import sqlglot.parser

QUERIES = Path(__file__).with_name("against_postgres.sql")

#: Prints each query's tree, or its error; with the argument "sources" the compiled modules are not found.
READ_QUERIES = """
import sys
from importlib import machinery
from pathlib import Path

class Sources:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.partition(".")[0] == "sqlglot":
            for folder in path or sys.path:
                finder = machinery.FileFinder(folder, (machinery.SourceFileLoader, machinery.SOURCE_SUFFIXES))
                if (spec := finder.find_spec(name)) is not None:
                    return spec

if sys.argv[2] == "sources":
    sys.meta_path.insert(0, Sources)

import sqlglot.parser
from mz_dagster.errors import Error
from mz_dagster.sql.body_parser import parse_body
from mz_dagster.sql.statements import SqlText

print(Path(sqlglot.parser.__file__).suffix)
for line in Path(sys.argv[1]).read_text().splitlines():
    query = line.partition("|||")[0]
    for text in (query, query[: len(query) * 2 // 3]):
        try:
            body = parse_body(SqlText(text))
            # In which order a query has its clauses is chance.
            print(sorted((type(one).__name__, one.name, str(body.span(one))) for one in body.root.walk()))
        except Error as error:
            print(error)
"""


def read(build: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", READ_QUERIES, str(QUERIES), build],
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    return done.stdout.splitlines()


def test_queries_are_read_alike_with_and_without_the_compiled_build() -> None:
    assert Path(sqlglot.parser.__file__).suffix != ".py", "sqlglot[c] is installed for the tests"
    compiled, sources = read("compiled"), read("sources")
    assert (compiled[0] == ".py", sources[0]) == (False, ".py")
    assert compiled[1:] == sources[1:]
    assert len(compiled) > 300
