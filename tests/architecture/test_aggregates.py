"""Holds what an aggregate is: one record, with its algebra or those that it is spelled in, which the binder goes by."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import pytest

from mz_dagster.compute.local import tournament, window_functions
from mz_dagster.compute.spark.tournament import extremes
from mz_dagster.compute.spark.window import positions
from mz_dagster.errors import Error
from mz_dagster.functions import AGGREGATES, OVERLOADS, TABLE_OVERLOADS
from mz_dagster.functions.aggregates.algebra import AggregateClass, Aggregated, AggregateFunction, Spelling
from mz_dagster.plan.relation import Reduce, Relation, inputs_of
from mz_dagster.scalars.types import Kind
from tests.sql.project import bind

_ROOT = Path(__file__).resolve().parents[2] / "mz_dagster"
_ROOM = _ROOT / "functions" / "aggregates"
_TYPES = {
    **{kind: kind.value for kind in Kind},
    Kind.UNCONSTRAINED: "numeric",
    Kind.NUMERIC: "numeric(9, 2)",
    Kind.CHAR: "char(3)",
    Kind.VARCHAR: "varchar(3)",
    Kind.ARRAY: "integer[]",
}
#: What SQL has no name for, or none without more.
_NAMELESS = (Kind.RECORD, Kind.DIMENSIONED, Kind.ENUM)


def test_an_aggregate_of_the_algebra_is_a_record_with_its_algebra() -> None:
    assert {one.value for one in AggregateFunction} == {n for n, one in AGGREGATES.items() if one.algebra is not None}
    for one in AGGREGATES.values():
        assert one.signatures
        assert all(signature.of or signature.refused for signature in one.signatures), one.name


def test_every_name_has_a_description_an_example_and_no_other_meaning() -> None:
    for one in AGGREGATES.values():
        if one.spelling is not Spelling.INTERNAL:
            assert one.says.endswith("."), one.name
            assert one.example is not None, one.name
    assert AGGREGATES.keys().isdisjoint(OVERLOADS.keys() | TABLE_OVERLOADS.keys())


def _literal(kind: Kind | None) -> str:
    if kind is Kind.UNCONSTRAINED:
        return "c::numeric"  # of a literal the digits are known
    return f"NULL::{_TYPES[Kind.INT4 if kind is None else kind]}"


def _call(one: Aggregated, arguments: tuple[Kind | None, ...], ordered: tuple[Kind | None, ...]) -> str:
    direct = ", ".join("'{0.5}'::float8[]" if kind is Kind.ARRAY and ordered else _literal(kind) for kind in arguments)
    order = f" WITHIN GROUP (ORDER BY {', '.join(map(_literal, ordered))})" if ordered else ""
    star = "*" if not arguments and not ordered else direct
    return f"SELECT {one.name}({star}){order} FROM t"


def _reductions(relation: Relation) -> list[Reduce]:
    below = list(chain.from_iterable(_reductions(one) for one in inputs_of(relation)))
    return [relation, *below] if isinstance(relation, Reduce) else below


@pytest.mark.parametrize("name", sorted(AGGREGATES.keys() - {"exact_sum"}))
def test_the_binder_takes_what_the_record_says(name: str) -> None:
    one = AGGREGATES[name]
    for signature in one.signatures:
        kinds = (*signature.arguments, *signature.ordered)
        if signature.refused or any(kind in _NAMELESS for kind in kinds):
            continue
        found = bind(_call(one, signature.arguments, signature.ordered)).relation
        (column,) = found.relation_type.columns
        result = Kind.INT4 if signature.result is None and None in kinds else signature.result
        assert column.type.kind is (kinds[-1] if result is None else result)
        assert column.nullable is one.nullable
        used = {core.function for reduction in _reductions(found) for core in reduction.aggregates}
        assert used == {*signature.of}, (name, signature)


@pytest.mark.parametrize("name", sorted(n for n, one in AGGREGATES.items() if None not in one.kinds + one.keys))
def test_the_binder_takes_nothing_else(name: str) -> None:
    one = AGGREGATES[name]
    if one.spelling is Spelling.INTERNAL or one.takes(2):
        return
    known = one.keys if one.ordered_set else one.kinds
    for kind in _TYPES:
        if kind not in (*known, *_NAMELESS):
            arguments, ordered = ((Kind.FLOAT8,), (kind,)) if one.ordered_set else ((kind,), ())
            with pytest.raises(Error, match=r"does not exist|is not supported"):
                bind(_call(one, arguments, ordered))


def _listed(tree: ast.Module) -> list[tuple[int, list[str]]]:
    """Returns the lines of lists, tables and patterns that have names of aggregates, and these."""
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.Tuple(elts=parts) | ast.List(elts=parts) | ast.Set(elts=parts):
                given = [part.value for part in parts if isinstance(part, ast.Constant)]
            case ast.Dict(keys=keys):
                given = [key.value for key in keys if isinstance(key, ast.Constant)]
            case ast.MatchOr(patterns=patterns):
                values = [one.value for one in patterns if isinstance(one, ast.MatchValue)]
                given = [one.value for one in values if isinstance(one, ast.Constant)]
            case ast.Match(cases=cases):
                values = [one.pattern.value for one in cases if isinstance(one.pattern, ast.MatchValue)]
                given = [one.value for one in values if isinstance(one, ast.Constant)]
            case _:
                continue
        names = [one for one in given if one in AGGREGATES and not AGGREGATES[one].hypothetical]
        if len(names) > 1 and names != ["min", "max"]:  # Arrow's bounds are called so, too
            found.append((node.lineno, names))
    return found


def _trees(is_asked: Callable[[str], bool]) -> Iterator[tuple[Path, ast.Module]]:
    """Yields the product's modules whose text is asked for, and what is in them."""
    for path in sorted(_ROOT.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if is_asked(text):
            yield path, ast.parse(text)


def _names_some(text: str) -> bool:
    return sum(f'"{name}"' in text for name in AGGREGATES) > 1


def test_there_is_no_second_table_of_names() -> None:
    """Ranks are window functions, too, and so have a table there; the kernels of `&` and its like have their names."""
    for path, tree in _trees(_names_some):
        if path.parent != _ROOM and not {"expressions", "numbers"} & set(path.parts):
            assert _listed(tree) == [], path


def _registered(tree: ast.Module) -> list[int]:
    lines = []
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id="Aggregated")):
                lines.append(node.lineno)
            case ast.Subscript(value=ast.Name(id="AGGREGATES"), ctx=ast.Store()):
                lines.append(node.lineno)
    return lines


def test_a_record_is_made_in_its_room() -> None:
    allowed = {"algebra.py": 2, "spelled.py": 1}
    for path, tree in _trees(lambda text: "Aggregated(" in text or "AGGREGATES[" in text):
        lines = _registered(tree)
        assert len(lines) <= (allowed.get(path.name, 0) if path.parent == _ROOM else 0), f"{path}: {lines}"


def test_kernels_are_of_aggregates_that_they_can_compute() -> None:
    for table in (tournament.KERNELS, extremes.KERNELS, positions.EXTREMES):
        assert {one.aggregate_class for one in table if one is not None} == {AggregateClass.HIERARCHICAL}
    assert {type(one) for one in window_functions.KERNELS} == {AggregateFunction}
