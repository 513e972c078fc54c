"""Whether what a file defines computes what an object of the catalog does, whatever words and names it says it by."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from types import MappingProxyType

from mz_dagster.adapter.definition import Definition
from mz_dagster.errors import Error
from mz_dagster.formalism import GlobalId
from mz_dagster.plan import lower_to_snapshot_plan, optimize
from mz_dagster.plan.lowering.stored_columns import Stored, over_stored
from mz_dagster.plan.physical import Physical, identity, rename_collections
from mz_dagster.plan.relation import Relation
from mz_dagster.sql import parse
from mz_dagster.sql.lexer import tokens_of


def are_equivalent(
    one: Definition, other: Definition, ids: Mapping[GlobalId, GlobalId], stored: Stored = MappingProxyType({})
) -> bool:
    """Returns whether two views, checks or indexes have the same rows at every time, computed in the same way.

    Args:
        one: A definition.
        other: Another.
        ids: For ids that the first one reads: those under which the second one does.
        stored: The columns of tables that were altered, as they are stored by now.
    """
    told = partial(_stored_identity, stored=stored)
    if one.kind not in ("view", "materialized view", "index", "check"):
        return False
    facts = [(each.kind, each.relation_type, each.timeline, each.retain_history_ms, each.key) for each in (one, other)]
    if facts[0] != facts[1]:
        return False
    if one.kind == "index" and one.on is not None and other.on is not None:
        if ids.get(one.on.id, one.on.id) != other.on.id:
            return False
    elif one.check is not None and other.check is not None:
        if ids.get(one.check.on.id, one.check.on.id) != other.check.on.id:
            return False
    elif one.relation is None or other.relation is None:
        return False
    if one.plan is not None and other.plan is not None:
        made, known = (
            [((), each.plan.output), *((found.key, found.plan) for found in each.plan.arrangements)]
            for each in (one, other)
            if each.plan is not None
        )
        return len(made) == len(known) and all(
            key == other_key and told(rename_collections(plan, ids)) == told(other_plan)
            for (key, plan), (other_key, other_plan) in zip(made, known, strict=True)
        )
    if one.plan is not None or other.plan is not None:
        return False
    return one.relation is other.relation is None or _same_query(one.relation, other.relation, ids, told)


def _stored_identity(plan: Physical, stored: Stored) -> object:
    return identity(over_stored(plan, stored))


def _same_query(
    one: Relation | None,
    other: Relation | None,
    ids: Mapping[GlobalId, GlobalId],
    told: Callable[[Physical], object],
) -> bool:
    assert one is not None
    assert other is not None
    try:
        plan, known = (lower_to_snapshot_plan(optimize(each)) for each in (one, other))
    except Error:  # it needs the reader's time
        return False
    plans = [*(each.plan for each in plan.shared), plan.output]
    others = [*(each.plan for each in known.shared), known.output]
    return len(plans) == len(others) and all(
        told(rename_collections(here, ids)) == told(there) for here, there in zip(plans, others, strict=True)
    )


def named_as(text: str, name: str) -> str:
    """Returns a definition's text under another name, as SQL writes it; one that has none, as an index may, as it is.

    Example:
        >>> named_as("CREATE VIEW v AS SELECT 1", "w")
        'CREATE VIEW w AS SELECT 1'
    """
    (statement,) = parse(text)
    own = getattr(statement, "name", None)
    if own is None:
        return text
    tokens = tokens_of(text)
    at = next(i for i, token in enumerate(tokens) if token.start == own.offset)
    while tokens[at + 1].is_symbol("."):
        at += 2
    return text[: own.offset] + name + text[tokens[at].end :]
