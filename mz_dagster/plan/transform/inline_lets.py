"""`Let x = v in b` becomes `b` with `v` for each `Get x`.

Shared subplans are computed once per use for now; what the uses need can then be pushed into each.
"""

from __future__ import annotations

from collections.abc import Mapping

from mz_dagster.formalism import GlobalId
from mz_dagster.plan.relation import Get, Let, Relation, inputs_of
from mz_dagster.plan.rewriting import with_inputs


def inline_lets(relation: Relation) -> Relation:
    """Returns `relation` without `Let`; an inner one of the same id hides an outer one."""
    return _inlined(relation, {})


def _inlined(relation: Relation, values: Mapping[GlobalId, Relation]) -> Relation:
    match relation:
        case Get():
            return values.get(relation.id, relation)
        case Let():
            value = _inlined(relation.value, values)
            return _inlined(relation.body, {**values, relation.id: value})
        case _:
            return with_inputs(relation, [_inlined(one, values) for one in inputs_of(relation)])
