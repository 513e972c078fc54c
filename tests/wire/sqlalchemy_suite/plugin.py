"""What SQLAlchemy's suite has its PostgreSQL dialect prepare otherwise for a project, and what is left out of it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from sqlalchemy.dialects.postgresql import provision
from sqlalchemy.dialects.postgresql.base import PGDDLCompiler

from tests.wire.sqlalchemy_suite.requirements import EXCLUDED

_provision: Any = provision
_compiler: Any = PGDDLCompiler


def pytest_configure() -> None:
    """Prepares the dialect; not on import, since this project's own tests are collected with this file.

    There are no extensions to create, and nobody is told of the sessions of others. Most models of the suite have
    foreign keys, which are refused: they are left out of what is made, as users are told.
    """
    _provision.post_configure_engine.fns["postgresql"] = lambda url, engine, follower_ident: None
    _provision.prepare_for_drop_tables.fns["postgresql"] = lambda config, connection: None
    _compiler.visit_foreign_key_constraint = lambda self, constraint, **options: None


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what is excluded; each exclusion has to be of something."""
    by_pattern = {pattern: [one for one in items if re.fullmatch(pattern, _name(one))] for pattern in EXCLUDED}
    stale = [pattern for pattern, found in by_pattern.items() if not found]
    if stale and not config.option.keyword:
        raise pytest.UsageError(f"nothing is excluded by {stale}")
    left_out = {id(one) for found in by_pattern.values() for one in found}
    config.hook.pytest_deselected(items=[one for one in items if id(one) in left_out])
    items[:] = [one for one in items if id(one) not in left_out]


def _name(item: pytest.Item) -> str:
    """Returns what a test is called, whatever it runs on."""
    return re.sub(r"_postgresql\+psycopg_\d+_\d+", "", item.nodeid.partition("::")[2])
