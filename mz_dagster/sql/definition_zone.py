"""Definitions in a session whose time zone is not UTC: only those that mean the same in both."""

from __future__ import annotations

from collections.abc import Iterator

from mz_dagster.functions import UTC, in_zone
from mz_dagster.plan.relation import Relation
from mz_dagster.plan.resolver import Resolver
from mz_dagster.scalars.scalar import Scalar
from mz_dagster.scalars.types import Column, RelationType
from mz_dagster.sql.binder import bind_definition
from mz_dagster.sql.circumstances import Circumstances
from mz_dagster.sql.constraints import bind_check, bind_computed, bind_default, is_by_chance
from mz_dagster.sql.errors import UnsupportedForm
from mz_dagster.sql.statements import CreateCheck, CreateMaterializedView, CreateTable, CreateView, SqlText

#: What a text means, and where it stands.
_Meaning = tuple[Relation | Scalar, SqlText]


def check_definition_in(
    zone: str, statement: CreateView | CreateMaterializedView | CreateCheck | CreateTable, resolver: Resolver
) -> None:
    """Refuses a definition that would mean something else in `zone` than in UTC, in which all sessions have it.

    Raises:
        UnsupportedForm: It does, with what to write instead.
    """
    for (here, text), (there, _) in zip(
        _meanings(UTC, statement, resolver), _meanings(zone, statement, resolver), strict=True
    ):
        if here != there:
            raise UnsupportedForm(
                "a definition that depends on the session's time zone is not supported",
                detail=f'It is the same in all sessions; this one\'s time zone is "{zone}".',
                hint="SET TIME ZONE 'UTC', or name the zone in it: moment AT TIME ZONE 'Europe/Berlin'.",
                position=text.offset + 1,
            )


def _meanings(
    zone: str, statement: CreateView | CreateMaterializedView | CreateCheck | CreateTable, resolver: Resolver
) -> Iterator[_Meaning]:
    if not isinstance(statement, CreateTable):
        columns = () if isinstance(statement, CreateCheck) else statement.columns
        yield bind_definition(statement.query, columns, resolver, zone=zone).relation, statement.query
        return
    type_ = RelationType(tuple(Column(one.name, one.type, one.nullable) for one in statement.columns))
    for column, one in zip(type_.columns, statement.columns, strict=True):
        if one.default is not None and not is_by_chance(one.default):
            with in_zone(zone):
                yield bind_default(column, one.default, Circumstances()), one.default
        if one.computed is not None:
            of_one = {one.name: one.computed}
            yield bind_computed(statement.name.last, type_, one.name, of_one, zone), one.computed
    for check in statement.checks:
        with in_zone(zone):
            yield bind_check(statement.name.last, type_, check, Circumstances()), check.predicate
