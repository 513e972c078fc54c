"""EXPLAIN: plans as text.

The logical plan shows what is computed; the physical one which operator computes it, of which kind, in which file of
`compute/`, what it keeps, and how many writes a step makes at most. A column is shown as `#position{name}`.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import assert_never

from mz_dagster.plan.physical import (
    ConstantRows,
    DeltaJoin,
    Linear,
    MaintainedPlan,
    NegateAll,
    Physical,
    ReadCollection,
    UnionAll,
    operator_kind,
    physical_inputs,
)
from mz_dagster.plan.relation import (
    Constant,
    Filter,
    Get,
    Join,
    Let,
    Map,
    Negate,
    Project,
    Relation,
    Union,
    inputs_of,
)
from mz_dagster.plan.scalar import Call, ColumnRef, If, Literal, Scalar
from mz_dagster.plan.types import RelationType

_FILES: dict[type, str] = {
    ReadCollection: "render.py",
    ConstantRows: "constant.py",
    Linear: "linear.py",
    NegateAll: "negate.py",
    UnionAll: "union.py",
    DeltaJoin: "delta_join.py",
}
_INFIX = {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "lte": "<=", "gt": ">", "ge": ">=", "gte": ">="}
_INFIX |= {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "modulo": "%", "concat": "||"}


def explain_logical(relation: Relation) -> str:
    """Returns the logical plan as text, one operator a line, inputs indented below.

    Example:
        >>> from mz_dagster.plan.types import Column, INT4, RelationType
        >>> t = Get("u1", RelationType((Column("a", INT4), Column("b", INT4))), "t")
        >>> print(explain_logical(Project(t, (1,))))
        Project #1{b}
          Get t (u1)
    """
    return "\n".join(_logical(relation, 0))


def explain_physical(plan: MaintainedPlan) -> str:
    """Returns the physical plan as text, arrangements first."""
    lines: list[str] = []
    for one in plan.arrangements:
        lines.append(f"{one.id}: key ({', '.join(f'#{i}' for i in one.key)})")
        lines += _physical(one.plan, 1)
    lines.append("output: " + ", ".join(str(column) for column in plan.relation_type.columns))
    lines += _physical(plan.output, 1)
    facts = [f"keys: {_keys(plan.relation_type)}"]
    if plan.relation_type.monotonic:
        facts.append("monotonic")
    lines.append("; ".join(facts))
    lines.append(f"writes per step: at most {1 + len(plan.arrangements)}")
    return "\n".join(lines)


def explain_scalar(scalar: Scalar) -> str:
    """Returns a scalar as text."""
    match scalar:
        case ColumnRef():
            return f"#{scalar.position}{{{scalar.name}}}" if scalar.name else f"#{scalar.position}"
        case Literal():
            return _literal(scalar)
        case If():
            shown = [explain_scalar(one) for one in (scalar.condition, scalar.then, scalar.otherwise)]
            return f"if({', '.join(shown)})"
        case Call():
            arguments = [explain_scalar(one) for one in scalar.arguments]
            operation, _, suffix = scalar.function.rpartition("_")
            if len(arguments) == 2 and operation in _INFIX and not suffix.startswith("_"):
                return f"({arguments[0]} {_INFIX[operation]} {arguments[1]})"
            if scalar.function in ("and", "or"):
                return "(" + f" {scalar.function} ".join(arguments) + ")"
            target = f" as {scalar.type}" if scalar.function.startswith("cast_") else ""
            return f"{scalar.function}({', '.join(arguments)}{target})"
        case _:
            assert_never(scalar)


def _literal(literal: Literal) -> str:
    match literal.value:
        case None:
            return f"null::{literal.type}"
        case bool():
            return str(literal.value).lower()
        case str():
            return "'" + literal.value.replace("'", "''") + "'"
        case int():
            return str(literal.value)
        case Decimal():
            return f"{literal.value:f}"
        case _:
            return f"{literal.value}::{literal.type}"


def _reference(relation_type: RelationType, position: int) -> str:
    column = relation_type.columns[position]
    return explain_scalar(ColumnRef(position, column.type, column.nullable, column.name))


def _keys(relation_type: RelationType) -> str:
    keys = sorted((len(key), sorted(key)) for key in relation_type.keys)
    return " ".join("(" + ", ".join(relation_type.names[i] for i in key) + ")" for _, key in keys) or "none known"


def _rows(rows: tuple[tuple[Literal, ...], ...]) -> str:
    shown = ["(" + ", ".join(_literal(cell) for cell in row) + ")" for row in rows[:3]]
    return (
        f"{len(rows)} row{'' if len(rows) == 1 else 's'}"
        + (f": {', '.join(shown)}" if rows else "")
        + (", ..." if len(rows) > 3 else "")
    )


def _equivalences(equivalences: Iterable[tuple[Scalar, ...]]) -> str:
    shown = [" = ".join(explain_scalar(scalar) for scalar in one) for one in equivalences]
    return " and ".join(shown) if shown else "cross"


def _logical(relation: Relation, depth: int) -> list[str]:
    lines = ["  " * depth + _logical_line(relation)]
    for one in inputs_of(relation):
        lines += _logical(one, depth + 1)
    return lines


def _logical_line(relation: Relation) -> str:
    match relation:
        case Get():
            return f"Get {relation.name} ({relation.id})" if relation.name else f"Get {relation.id}"
        case Constant():
            return f"Constant {_rows(relation.rows)}"
        case Map():
            shown = [f"{n} := {explain_scalar(s)}" for n, s in zip(relation.names, relation.scalars, strict=True)]
            return f"Map {', '.join(shown)}"
        case Filter():
            return "Filter " + " and ".join(explain_scalar(one) for one in relation.predicates)
        case Project():
            below = relation.input.relation_type
            return "Project " + ", ".join(_reference(below, one) for one in relation.positions)
        case Join():
            return f"Join {_equivalences(relation.equivalences)}"
        case Negate():
            return "Negate"
        case Union():
            return "Union"
        case Let():
            return f"Let {relation.id}"
        case _:
            assert_never(relation)


def _physical(plan: Physical, depth: int) -> list[str]:
    pad = "  " * depth
    about = f"[{operator_kind(plan).value}, {_FILES[type(plan)]}]"
    lines: list[str] = []
    match plan:
        case ReadCollection():
            lines.append(f"{pad}Read {plan.name or plan.id} ({plan.id}) {about}")
        case ConstantRows():
            lines.append(f"{pad}Constant {_rows(plan.rows)} {about}")
        case Linear():
            lines.append(f"{pad}Linear {about}")
            place = plan.mfp.arity
            for kind, scalar in plan.mfp.steps:
                if kind == "map":
                    lines.append(f"{pad}  map #{place} := {explain_scalar(scalar)}")
                    place += 1
                else:
                    lines.append(f"{pad}  filter {explain_scalar(scalar)}")
            lines.append(f"{pad}  project ({', '.join(f'#{one}' for one in plan.mfp.projection)})")
        case NegateAll():
            lines.append(f"{pad}Negate {about}")
        case UnionAll():
            lines.append(f"{pad}Union {about}")
        case DeltaJoin():
            lines.append(f"{pad}DeltaJoin {_equivalences(plan.equivalences)} {about}")
            for i, order in enumerate(plan.orders):
                lines.append(f"{pad}  term {i}: look up {', '.join(str(one) for one in order)}")
        case _:
            assert_never(plan)
    for one in physical_inputs(plan):
        lines += _physical(one, depth + 1)
    return lines
