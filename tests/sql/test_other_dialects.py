"""Functions of other dialects are refused with how PostgreSQL writes the same, in forms that bind."""

from __future__ import annotations

import pytest

from mz_dagster.errors import Error
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.relation import Get
from mz_dagster.plan.resolver import Item
from mz_dagster.scalars.types import (
    BOOL,
    DATE,
    INT4,
    JSONB,
    TEXT,
    TIMESTAMP,
    Column,
    RelationType,
    array_of,
)
from mz_dagster.sql import bind_query
from mz_dagster.sql.circumstances import Circumstances
from mz_dagster.sql.other_dialects import FORMS, advice_on
from mz_dagster.sql.statements import SqlText

_TYPES = {
    "x": INT4, "y": INT4, "z": INT4, "s": TEXT, "d": DATE, "e": DATE, "t": TIMESTAMP, "u": TIMESTAMP, "p": BOOL,
    "a": array_of(INT4), "j": JSONB,
}  # fmt: skip


class _Names:
    """Resolves one table of all that the forms are about."""

    columns = RelationType(tuple(Column(name, type_) for name, type_ in _TYPES.items()))

    def resolve(self, name: tuple[str, ...]) -> Item | None:
        relation = Get(GlobalId("u1"), self.columns, "forms")
        return Item(GlobalId("u1"), "forms", "table", self.columns, "default", relation) if name == ("forms",) else None

    def names(self) -> tuple[str, ...]:
        return ("forms",)


def _bind(expression: str) -> None:
    bind_query(SqlText(f"SELECT {expression} FROM forms"), _Names(), circumstances=Circumstances())


@pytest.mark.parametrize("form", sorted(set(FORMS.values())))
def test_what_is_written_instead_binds(form: str) -> None:
    _bind(form)


@pytest.mark.parametrize("name", sorted(FORMS))
def test_the_error_of_a_function_of_another_dialect_says_how_it_is_written(name: str) -> None:
    with pytest.raises(Error) as told:
        _bind(f"{name}(x)")
    assert told.value.hint == advice_on(name)


def test_a_name_that_is_known_nowhere_is_compared_with_others() -> None:
    assert advice_on("lenght") is None
    with pytest.raises(Error, match="does not exist") as told:
        _bind("lenght(s)")
    assert told.value.hint == 'Perhaps you meant "length".'
