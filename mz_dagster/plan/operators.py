"""A physical plan in a few words, for whoever watches it run: its operators from the output down, each kind once."""

from __future__ import annotations

from typing import assert_never

from mz_dagster.plan.physical import (
    Accumulate,
    ConstantRows,
    DeltaJoin,
    Extremes,
    Gathered,
    NegateAll,
    Physical,
    ReadCollection,
    Staged,
    StateOperator,
    TopRows,
    UnionAll,
    Windowed,
    physical_inputs,
)


def operators(plan: Physical) -> str:
    """Returns the operators of a plan as a person would name them: what keeps or joins, else what it is.

    Example:
        >>> from mz_dagster.formalism import GlobalId
        >>> from mz_dagster.scalars.types import Column, INT4, INT8, RelationType
        >>> sales = RelationType((Column("shop", INT4), Column("amount", INT8)))
        >>> state = RelationType((Column("shop", INT4), Column("rows", INT8), Column("sum", INT8)))
        >>> operators(Accumulate(ReadCollection(GlobalId("u1"), sales, "sales"), 1, state))
        'Accumulate by shop'
        >>> operators(ReadCollection(GlobalId("u1"), sales, "sales"))
        'Read sales'
    """
    found = dict.fromkeys(_telling(plan, set()))
    return " of ".join(found) if found else operator_name(plan)


def _telling(plan: Physical, seen: set[int]) -> list[str]:
    """Returns the names of the operators that do more than pass rows on, the output's first; not of those seen."""
    if id(plan) in seen:
        return []
    seen.add(id(plan))
    own = [operator_name(plan)] if isinstance(plan, DeltaJoin | StateOperator) else []
    return own + [name for one in physical_inputs(plan) for name in _telling(one, seen)]


def operator_name(plan: Physical) -> str:
    """Returns the name of a plan's last operator, with what it does it by."""
    match plan:
        case ReadCollection():
            return f"Read {plan.name or plan.id}"
        case ConstantRows():
            return "Constant"
        case NegateAll():
            return "Negate"
        case UnionAll():
            return "Union"
        case DeltaJoin():
            return f"DeltaJoin of {len(plan.inputs)}"
        case Accumulate():
            return f"Accumulate{_by(plan, range(plan.key_arity))}"
        case Staged():
            return f"{_stage(plan)}{_by(plan.input, plan.group)}"
        case _:
            return type(plan).__name__


def _stage(plan: Staged) -> str:
    match plan.function:
        case TopRows():
            return "TopRows"
        case Extremes():
            return "Extremes"
        case Gathered():
            return "Gathered"
        case Windowed():
            return "Windowed"
        case _:
            assert_never(plan.function)


def _by(plan: Physical, positions: range | tuple[int, ...]) -> str:
    names = plan.relation_type.names
    return f" by {', '.join(names[one] for one in positions)}" if positions else ""
