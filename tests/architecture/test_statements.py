"""Holds that the table of statements is whole, and that each of them has its place in one folder."""

from __future__ import annotations

from mz_dagster.adapter.sequence.statements import STATEMENTS
from mz_dagster.sql import Statement


def leaves() -> set[str]:
    """Returns the names of the statements' classes that have none below them.

    By name: of a class with slots there are two, one of which is nobody's.
    """
    found, parents, open_ = set(), set(), [Statement]
    while open_:
        one = open_.pop()
        below = one.__subclasses__()
        found.add(one.__name__)
        parents |= {one.__name__} if below else set()
        open_ += below
    return found - parents


def test_each_type_of_statement_has_its_line_in_the_table() -> None:
    assert {one.__name__ for one in STATEMENTS} == leaves()


def test_each_statement_is_carried_out_by_a_function_of_a_file_for_it() -> None:
    wrong = [
        f"{type_.__name__}: {one.carry_out.__module__}.{one.carry_out.__name__}"
        for type_, one in STATEMENTS.items()
        if not one.carry_out.__module__.startswith("mz_dagster.adapter.sequence.")
    ]
    assert not wrong, "\n".join(wrong)
