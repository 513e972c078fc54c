"""EXPLAIN of every transform and of some queries, against files: run with UPDATE_GOLDEN=1 to write them anew."""

import os
from pathlib import Path

import pytest

from mz_dagster.plan import PIPELINE, explain_logical, explain_physical, lower_to_maintained_plan, optimize
from mz_dagster.plan.optimize import Pass
from tests.plan.queries import QUERIES, TIMED, VIEWS
from tests.sql.project import Project, bind

GOLDEN = Path(__file__).parent / "golden"
ALL = QUERIES | TIMED
TRANSFORMS = {one.name: one for one in PIPELINE}


def text_of(name: str) -> str:
    project = Project()
    for view, query in VIEWS.items():
        project.add_view(view, query)
    bound = bind(ALL[name], project=project)
    parts = [ALL[name], "-- bound", explain_logical(bound.relation)]
    if name in TRANSFORMS:
        index = [one.name for one in PIPELINE].index(name)
        before: tuple[Pass, ...] = PIPELINE[:index]
        relation = optimize(bound.relation, before)
        after = PIPELINE[index].run(relation)
        assert after != relation, "the golden query does not exercise its transform"
        parts += [f"-- before {name}", explain_logical(relation), f"-- after {name}", explain_logical(after)]
    optimized = optimize(bound.relation)
    plan = lower_to_maintained_plan(optimized, bound.relation_type.names)
    parts += ["-- optimized", explain_logical(optimized), "-- physical", explain_physical(plan)]
    return "\n".join(parts) + "\n"


@pytest.mark.parametrize("name", ALL)
def test_plan_is_as_in_its_golden_file(name: str) -> None:
    path = GOLDEN / f"{name}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text_of(name), encoding="utf-8")
    assert text_of(name) == path.read_text(encoding="utf-8")


def test_every_transform_has_a_golden_file_and_every_file_a_query() -> None:
    assert set(TRANSFORMS) <= set(ALL)
    assert {path.stem for path in GOLDEN.glob("*.txt")} == set(ALL)
