"""Holds what a function is: one record, which has a reference, and with a name in SQL a description and an example."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from mz_dagster.functions import FUNCTIONS, OVERLOADS, POLYMORPHIC, TABLE_OVERLOADS
from mz_dagster.functions.casts import CASTS, short_name
from mz_dagster.functions.descriptions import DESCRIPTIONS
from mz_dagster.functions.registry import BUILT, LAZY, PURE, RECORDS

_ROOM = Path(__file__).resolve().parents[2] / "mz_dagster" / "functions"
_CASTS = {f"cast_{short_name(source)}_to_{short_name(target)}" for source, target in CASTS}
#: Never evaluated: it is a literal in a query, and a bound in a view.
_NOW = "mz_now"


def test_a_function_is_a_record_or_a_cast() -> None:
    assert FUNCTIONS.keys() == RECORDS.keys() | _CASTS | {_NOW}
    assert all(FUNCTIONS[name] is record.function for name, record in RECORDS.items())


def test_every_function_has_one_reference() -> None:
    references = Counter((*PURE, *BUILT, *LAZY))
    assert references.keys() == FUNCTIONS.keys() - {_NOW}
    assert {name for name, count in references.items() if count > 1} == set()


def test_every_name_has_a_description_and_what_is_offered_an_example() -> None:
    assert DESCRIPTIONS.keys() == OVERLOADS.keys() | POLYMORPHIC.keys() | TABLE_OVERLOADS.keys()
    offered = {*POLYMORPHIC, *TABLE_OVERLOADS}
    offered |= {name for name, several in OVERLOADS.items() if any(not one.refused for one in several)}
    assert {name for name, one in DESCRIPTIONS.items() if one.example and one.result} == offered
    assert all(one.text for one in DESCRIPTIONS.values())


def test_the_record_that_the_page_shows_is_there() -> None:
    page = (_ROOM.parents[1] / "docs" / "extending.md").read_text(encoding="utf-8")
    shown = page.partition('```python title="characters.py"\n')[2].partition("```")[0]
    assert shown.startswith("@function(")
    assert shown in (_ROOM / "text" / "characters.py").read_text(encoding="utf-8")


def test_no_two_overloads_of_a_name_have_one_signature() -> None:
    for overloads in (OVERLOADS, TABLE_OVERLOADS):
        signatures = Counter((one.sql_name, one.signature) for one in chain.from_iterable(overloads.values()))
        assert {one for one, count in signatures.items() if count > 1} == set()


def _made_otherwise(tree: ast.Module) -> Iterator[int]:
    """Yields the lines that make a function or an overload, or register one, in another way than by its record."""
    registers = ("RECORDS", "PURE", "SCALED", "BUILT", "LAZY", "DESCRIBED", "OF_ANY", "REFUSED")
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="Function" | "Overload")):
                yield node.lineno
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store()) if name in registers:
                yield node.lineno
            case ast.AugAssign(target=ast.Name(id=name)) if name in registers:
                yield node.lineno
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr="update" | "append" | "add" | "setdefault")):
                if name in registers:
                    yield node.lineno


def test_nothing_is_registered_outside_its_record() -> None:
    # The table has casts and mz_now(); what guards references where values are infinite replaces them.
    allowed = {"registry.py": 99, "table.py": 2, "references.py": 1}
    for path in sorted(_ROOM.rglob("*.py")):
        lines = list(_made_otherwise(ast.parse(path.read_text(encoding="utf-8"))))
        assert len(lines) <= allowed.get(path.name, 0), f"{path}: {lines}"


def test_what_has_records_is_imported_with_the_table() -> None:
    having = {
        ".".join(("mz_dagster.functions", *path.relative_to(_ROOM).with_suffix("").parts))
        for path in _ROOM.rglob("*.py")
        for node in ast.parse(path.read_text(encoding="utf-8")).body
        if isinstance(node, ast.ImportFrom) and node.module == "mz_dagster.functions.registry"
        if {one.name for one in node.names} & {"function", "pure", "built", "describe", "refuse"}
    }
    program = "import sys, mz_dagster.functions; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert len(having) > 30
    assert having - {*run.stdout.split()} == set()
