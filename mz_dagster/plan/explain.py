"""EXPLAIN: plans as text.

The logical plan shows what is computed; the physical one which operator computes it, of which kind, in which file of
`compute/`, what it keeps, and how many writes a step makes at most. A column is shown as `#position{name}`.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import assert_never

from mz_dagster.functions.cell_text import cell_text
from mz_dagster.functions.moments.interval_text import text_of_interval
from mz_dagster.plan.physical import (
    Accumulate,
    Catch,
    ConstantRows,
    DeltaJoin,
    Extremes,
    Gathered,
    Linear,
    MaintainedPlan,
    NegateAll,
    Physical,
    ReadCollection,
    Repeat,
    Staged,
    TemporalState,
    TopRows,
    UnionAll,
    Unnest,
    Windowed,
    operator_kind,
    physical_inputs,
)
from mz_dagster.plan.relation import (
    Aggregate,
    CatchErrors,
    ColumnOrder,
    Constant,
    DependentJoin,
    Filter,
    FlatMap,
    FrameBound,
    FrameExclusion,
    Get,
    Join,
    Let,
    Map,
    Negate,
    Projection,
    Reduce,
    Relation,
    RepeatRow,
    TemporalFilter,
    Threshold,
    TopK,
    Union,
    Window,
    WindowFrame,
    WindowFunction,
    inputs_of,
)
from mz_dagster.scalars.scalar import Call, ColumnRef, If, Literal, OuterColumn, Scalar, Subquery, is_now
from mz_dagster.scalars.types import RelationType
from mz_dagster.scalars.values import Dimensioned, Interval

_FILES: dict[type, str] = {
    ReadCollection: "render.py",
    ConstantRows: "constant.py",
    Linear: "linear.py",
    NegateAll: "negate.py",
    UnionAll: "union.py",
    DeltaJoin: "delta_join.py",
    Repeat: "repeat.py",
    Catch: "catch.py",
    Unnest: "unnest.py",
    Accumulate: "accumulate.py",
    Staged: "staged.py",
    TemporalState: "temporal.py",
}
_INFIX = {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "lte": "<=", "gt": ">", "ge": ">=", "gte": ">="}
_INFIX |= {"add": "+", "subtract": "-", "multiply": "*", "divide": "/", "modulo": "%", "concat": "||"}


def explain_logical(relation: Relation) -> str:
    """Returns the logical plan as text, one operator a line, inputs indented below.

    Example:
        >>> from mz_dagster.scalars.types import Column, INT4, RelationType
        >>> t = Get("u1", RelationType((Column("a", INT4), Column("b", INT4))), "t")
        >>> print(explain_logical(Projection(t, (1,))))
        Project #1{b}
          Get t (u1)
    """
    return "\n".join(_logical(relation, 0))


def explain_physical(plan: MaintainedPlan) -> str:
    """Returns the physical plan as text, arrangements first."""
    lines: list[str] = []
    for one in plan.arrangements:
        lines.append(f"{one.id}: key ({', '.join(_reference(one.relation_type, i) for i in one.key)})")
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
        case OuterColumn():
            return f"outer {scalar.number}"
        case Subquery():
            return f"{scalar.kind.value}({', '.join(explain_scalar(one) for one in scalar.arguments)})"
        case Call() if is_now(scalar):
            return "mz_now()"
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
        case bytes():
            return f"'\\x{literal.value.hex()}'"
        case Interval():
            return f"interval '{text_of_interval(literal.value)}'"
        case Dimensioned():
            return f"'{cell_text(literal.value, literal.type)}'::{literal.type}"
        case tuple() if literal.type.element is not None:
            return f"ARRAY[{', '.join(_literal(Literal(one, literal.type.element)) for one in literal.value)}]"
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


def _equivalences(equivalences: Iterable[tuple[Scalar, ...]], null_safe: frozenset[int]) -> str:
    shown = [
        (" is not distinct from " if number in null_safe else " = ").join(explain_scalar(scalar) for scalar in one)
        for number, one in enumerate(equivalences)
    ]
    return " and ".join(shown) if shown else "cross"


def _columns(relation_type: RelationType, positions: Iterable[int]) -> str:
    return ", ".join(_reference(relation_type, one) for one in positions)


def _order(relation_type: RelationType, order: Iterable[ColumnOrder]) -> str:
    shown = []
    for one in order:
        direction = (" desc" if one.descending else "") + (
            "" if one.nulls_first == one.descending else f" nulls {'first' if one.nulls_first else 'last'}"
        )
        shown.append(_reference(relation_type, one.position) + direction)
    return ", ".join(shown)


def _aggregate(relation_type: RelationType, one: Aggregate) -> str:
    arguments = _columns(relation_type, one.arguments) or "*"
    distinct = "distinct " if one.distinct else ""
    order = f" order by {_order(relation_type, one.order)}" if one.order else ""
    counts = "" if one.filter is None else f" filter {_reference(relation_type, one.filter)}"
    return f"{one.function.value}({distinct}{arguments}{order}){counts}"


def _reduce(relation: Reduce) -> str:
    below = relation.input.relation_type
    parts = [_aggregate(below, one) for one in relation.aggregates]
    by = f" by {_columns(below, relation.key)}" if relation.key else ""
    shown = f"Reduce {', '.join(parts)}{by}" if parts else f"Distinct{by}"
    return shown + _size(relation.group_size)


def _size(group_size: int | None) -> str:
    return "" if group_size is None else f" group size {group_size}"


def _top(relation_type: RelationType, top: TopK | TopRows) -> str:
    parts = [f"order by {_order(relation_type, top.order)}"] if top.order else []
    parts += [] if top.limit is None else [f"limit {top.limit}"]
    parts += ["with ties"] if top.ties else []
    parts += [f"offset {top.offset}"] if top.offset else []
    return " ".join(parts)


def _by(relation_type: RelationType, group: tuple[int, ...]) -> str:
    return f" by {_columns(relation_type, group)}" if group else ""


def _function(relation_type: RelationType, one: WindowFunction) -> str:
    shown = f"{one.name}({_columns(relation_type, one.arguments)})"
    shown += " ignore nulls" if one.ignore_nulls else ""
    shown += "" if one.filter is None else f" filter {_reference(relation_type, one.filter)}"
    return shown + ("" if one.frame is None else f" {_frame(one.frame)}")


def _frame(frame: WindowFrame) -> str:
    exclusion = "" if frame.exclusion is FrameExclusion.NO_OTHERS else f" exclude {frame.exclusion.value}"
    return f"{frame.unit.value} between {_bound(frame.start)} and {_bound(frame.end)}{exclusion}"


def _bound(bound: FrameBound) -> str:
    side = "preceding" if bound.preceding else "following"
    if bound.unbounded:
        return f"unbounded {side}"
    return "current row" if bound.offset is None else f"{_literal(bound.offset)} {side}"


def _bounds(lower: tuple[Scalar, ...], upper: tuple[Scalar, ...]) -> str:
    parts = [f"from {explain_scalar(one)}" for one in lower] + [f"until {explain_scalar(one)}" for one in upper]
    return ", ".join(parts) or "always"


def _unnested(relation_type: RelationType, arrays: int, ordinality: bool) -> str:
    shown = _columns(relation_type, range(relation_type.arity - arrays, relation_type.arity))
    return shown + (" with ordinality" if ordinality else "")


def _logical(relation: Relation, depth: int) -> list[str]:
    lines = ["  " * depth + _logical_line(relation)]
    for one in inputs_of(relation):
        lines += _logical(one, depth + 1)
    return lines


def _logical_line(relation: Relation) -> str:
    inputs = inputs_of(relation)
    below_type = inputs[0].relation_type if inputs else relation.relation_type
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
        case Projection():
            below = relation.input.relation_type
            return "Project " + ", ".join(_reference(below, one) for one in relation.positions)
        case Join():
            return f"Join {_equivalences(relation.equivalences, relation.null_safe)}"
        case Reduce():
            return _reduce(relation)
        case TopK():
            top = _top(below_type, relation)
            return f"TopK {top}{_by(below_type, relation.group)}{_size(relation.group_size)}"
        case Window():
            functions = ", ".join(_function(below_type, one) for one in relation.functions)
            order = f" order by {_order(below_type, relation.order)}" if relation.order else ""
            return f"Window {functions}{_by(below_type, relation.partition)}{order}"
        case Threshold():
            return "Threshold"
        case TemporalFilter():
            return f"TemporalFilter {_bounds(relation.lower, relation.upper)}"
        case RepeatRow():
            return f"RepeatRow {_reference(below_type, relation.count)}"
        case FlatMap():
            return f"FlatMap {_unnested(below_type, relation.arrays, relation.ordinality)}"
        case Negate():
            return "Negate"
        case CatchErrors():
            return "CatchErrors"
        case Union():
            return "Union"
        case Let():
            return f"Let {relation.id}"
        case DependentJoin():
            return f"DependentJoin {', '.join(explain_scalar(one) for one in relation.arguments)}"
        case _:
            assert_never(relation)


def _physical(plan: Physical, depth: int) -> list[str]:
    pad = "  " * depth
    about = f"[{operator_kind(plan).value}, {_FILES[type(plan)]}]"
    lines: list[str] = []
    match plan:
        case ReadCollection():
            skipping = f" skipping files by {' and '.join(map(explain_scalar, plan.where))}" if plan.where else ""
            lines.append(f"{pad}Read {plan.name or plan.id} ({plan.id}){skipping} {about}")
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
        case Catch():
            lines.append(f"{pad}Catch {about}")
        case DeltaJoin():
            lines.append(f"{pad}DeltaJoin {_equivalences(plan.equivalences, plan.null_safe)} {about}")
            for i, order in enumerate(plan.orders):
                lines.append(f"{pad}  term {i}: look up {', '.join(str(one) for one in order)}")
        case Repeat():
            lines.append(f"{pad}Repeat {_reference(plan.input.relation_type, plan.count)} {about}")
        case Unnest():
            shown = _unnested(plan.input.relation_type, plan.arrays, plan.ordinality)
            lines.append(f"{pad}Unnest {shown} {about}")
        case Accumulate():
            columns = plan.relation_type
            key = _columns(columns, range(plan.key_arity)) or "nothing"
            sums = _columns(columns, range(plan.key_arity + 1, columns.arity))
            lines.append(f"{pad}Accumulate by {key}: rows{', ' + sums if sums else ''} {about}")
        case Staged():
            lines.append(f"{pad}Staged {_staged(plan)} {about}")
        case TemporalState():
            lines.append(f"{pad}TemporalState {_bounds(plan.lower, plan.upper)} {about}")
        case _:
            assert_never(plan)
    for one in physical_inputs(plan):
        lines += _physical(one, depth + 1)
    return lines


def _staged(plan: Staged) -> str:
    below = plan.input.relation_type
    match plan.function:
        case TopRows():
            shown = "top " + _top(below, plan.function)
        case Extremes():
            others = [position for position in range(below.arity) if position not in plan.group]
            shown = ", ".join(
                f"{one.value}({_reference(below, position)})"
                for position, one in zip(others, plan.function.functions, strict=True)
            )
        case Gathered():
            shown = ", ".join(_aggregate(below, one) for one in plan.function.aggregates)
        case Windowed():
            order = f" order by {_order(below, plan.function.order)}" if plan.function.order else ""
            shown = ", ".join(_function(below, one) for one in plan.function.functions) + order
        case _:
            assert_never(plan.function)
    stages = "monotonic" if plan.monotonic else "buckets " + ", ".join(str(one) for one in plan.buckets)
    return f"{shown}{_by(below, plan.group)}; {stages}"
