"""A `regclass` and its like in a result: the name of what the object id stands for, as a text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mz_dagster.functions.evaluation import compiled
from mz_dagster.scalars.scalar import Literal
from mz_dagster.scalars.types import TEXT, Column, ScalarType, array_of
from mz_dagster.sql.catalog_calls import REGISTERED, shown_by_label
from mz_dagster.sql.catalog_facts import CatalogFacts

Rows = Sequence[tuple[Any, ...]]


def named_columns(columns: Sequence[Column]) -> tuple[Column, ...]:
    """Returns the columns of a result, those of object ids that are shown by their names as texts."""
    return tuple(replace(one, type=_shown_type(one.type)) for one in columns)


def _shown_type(type_: ScalarType) -> ScalarType:
    if type_.label in REGISTERED:
        return TEXT
    return array_of(TEXT) if type_.element is not None and type_.element.label in REGISTERED else type_


def has_names(columns: Sequence[Column]) -> bool:
    """Returns whether some of the columns are of object ids that are shown by their names."""
    return any(_shown_type(one.type) is not one.type for one in columns)


def with_names(facts: CatalogFacts, rows: Rows, columns: Sequence[Column]) -> Rows:
    """Returns the rows of a result, with names in the place of object ids that are shown by them."""
    types = [one.type for one in columns]
    if not has_names(columns):
        return rows
    return tuple(tuple(_named(facts, *pair) for pair in zip(row, types, strict=True)) for row in rows)


def _named(facts: CatalogFacts, cell: Any, type_: ScalarType) -> Any:
    if cell is None or _shown_type(type_) is type_:
        return cell
    if type_.element is not None:
        return [_named(facts, one, type_.element) for one in cell]
    return compiled(shown_by_label(facts, Literal(cell, type_)))(())
