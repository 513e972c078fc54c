"""Errors of a subquery's rows, told by the row of arguments for which they are.

A subquery in a branch of CASE, behind the first argument of coalesce, or beside AND or OR, may not be asked for by some
row, and then its errors are nobody's. But it is computed for the arguments of all rows at once, where an error of one
would be an error of the whole. So such a plan is made total, and what it takes away is kept as rows:

    Map[s] R            is   Map[without_error(s)] R      and   the domain's columns, error_of(s) of R where that is one
    Filter[p] R         is   Filter[without_error(p)] R   and   the same of p

A part that takes no arguments stays as it is, and its errors become rows beside its own:

    closed R            is   Filter[error is null] CatchErrors R     and   the domain beside the others' errors

What the subquery says beside a row of arguments that has an error does not matter: whoever asks raises that.

What fails without a scalar that does, as a sum that overflows, is taken apart into what cannot and one that can
(`total_groups`). What bounds the times at which a row is there is an error whether or not the row is. Comparisons of a
join are of columns, each of one input, until the plan is optimized, when nothing in it fails any more.

Cost: what is below a scalar that can fail is computed once and evaluated twice; a minimum of no rows, as a rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from mz_dagster.formalism import GlobalId
from mz_dagster.functions.aggregates.algebra import AggregateFunction
from mz_dagster.plan.dependence import is_dependent
from mz_dagster.plan.relation import (
    Aggregate,
    CatchErrors,
    Filter,
    Get,
    Join,
    Map,
    Reduce,
    Relation,
    Union,
    Window,
    inputs_of,
    query_of,
)
from mz_dagster.plan.rewriting import can_fail, moved, projected_to, reference, scalars_of, shifted
from mz_dagster.plan.row_count import at_most_one_row
from mz_dagster.plan.semijoin import ONE_ROW, Sharing, minus, semijoin
from mz_dagster.plan.total_groups import group_may_fail, without_group_errors
from mz_dagster.plan.transform.fold_constants import fold_scalar
from mz_dagster.plan.transform.temporal_filters import comparison_with_now
from mz_dagster.scalars.scalar import (
    Call,
    ColumnRef,
    If,
    Literal,
    Scalar,
    Subquery,
    SubqueryKind,
    children,
    columns_of,
    substitute,
    walk,
)
from mz_dagster.scalars.types import BOOL, TEXT, RelationType

_ERROR = "error"
#: Functions whose only error is that a numeric has too many digits.
_FAILING_OF_DIGITS = (
    "add_numeric",
    "subtract_numeric",
    "multiply_numeric",
    "whole_numeric",
    "cast_int8_to_numeric",
    "cast_numeric_to_numeric",
)


def asked_by_some(scalars: Iterable[Scalar]) -> frozenset[Subquery]:
    """Returns the subqueries of scalars whose values not every row asks for.

    Example:
        >>> from mz_dagster.scalars.scalar import ColumnRef
        >>> from mz_dagster.scalars.types import INT4
        >>> one = Subquery(SubqueryKind.SCALAR, Map(ONE_ROW, (Literal(1, INT4),), ("one",)))
        >>> a = ColumnRef(0, INT4)
        >>> [len(asked_by_some([Call("coalesce", each, INT4)])) for each in ((a, one), (one, a))]
        [1, 0]
    """
    return frozenset(found for scalar in scalars for found in _asked_by_some(scalar, False))


def _asked_by_some(scalar: Scalar, may_pass: bool) -> Iterator[Subquery]:
    if isinstance(scalar, Subquery) and may_pass:
        yield scalar
    for place, one in enumerate(children(scalar)):
        match scalar:
            case If() | Call(function="coalesce"):
                yield from _asked_by_some(one, may_pass or place > 0)
            case Call(function="and" | "or"):
                yield from _asked_by_some(one, True)
            case _:
                yield from _asked_by_some(one, may_pass)


def may_fail(relation: Relation, lets: Mapping[GlobalId, Relation], *, of_digits: bool = True) -> bool:
    """Returns whether some scalar of a plan, or a subquery in one, can have an error as its outcome.

    Args:
        relation: The plan.
        lets: What the local ids that are bound around it stand for.
        of_digits: Whether it counts that a number may have more digits than a numeric, which PostgreSQL's has not.
    """
    fails = can_fail if of_digits else _fails_of_more_than_digits
    seen: set[int] = set()
    waiting = [relation]
    while waiting:
        one = waiting.pop()
        if id(one) not in seen:
            seen.add(id(one))
            waiting += inputs_of(one)
            if isinstance(one, Get) and one.id in lets:
                waiting.append(lets[one.id])
            if group_may_fail(one, of_digits=of_digits):
                return True
            for scalar in scalars_of(one):
                if fails(scalar):
                    return True
                for each in walk(scalar):
                    if isinstance(each, Subquery) and subquery_may_fail(each, lets, of_digits=of_digits):
                        return True
    return False


def _fails_of_more_than_digits(scalar: Scalar) -> bool:
    """Returns whether a scalar can fail, but for numerics of too many digits: in an average these are all that can."""

    def total_of_average(one: Scalar) -> Scalar | None:
        match one:
            case If(
                condition=Call(function="eq_int8", arguments=(count, Literal(value=0))),
                otherwise=Call(
                    function="divide_numeric",
                    arguments=(total, Call(function="cast_int8_to_numeric", arguments=(same,))),
                ),
            ) if same == count:
                return total
        return None

    return can_fail(substitute(fold_scalar(scalar), total_of_average), _FAILING_OF_DIGITS)


def subquery_may_fail(subquery: Subquery, lets: Mapping[GlobalId, Relation], *, of_digits: bool = True) -> bool:
    """Returns whether what a subquery says may be an error, that of a scalar one having several rows included."""
    is_tested = subquery.test is not None and can_fail(subquery.test)
    query = query_of(subquery)
    may_be_several = subquery.kind is SubqueryKind.SCALAR and not at_most_one_row(query)
    return is_tested or may_be_several or may_fail(query, lets, of_digits=of_digits)


def is_guarded(subquery: Subquery, lets: Mapping[GlobalId, Relation], *, in_filter: bool) -> bool:
    """Returns whether the errors of a subquery are only those of rows that ask, though not one passes it by.

    There may be no rows, so those of a subquery without arguments are; with arguments, it is computed for what asks. In
    a filter an error beside the value costs the join by that value: of a number with too many digits, which is no error
    of PostgreSQL's, it stays the whole's.
    """
    query = query_of(subquery)
    return not is_dependent(query) and (not in_filter or may_fail(query, lets, of_digits=False))


@dataclass(slots=True)
class Failures:
    """Collects the errors of a plan that is computed for a domain.

    Attributes:
        sharing: Takes the subplans that are read once more for their errors.
        by: How many columns the domain has.
        found: Plans of errors: the domain's columns, and the text.
    """

    sharing: Sharing
    by: int
    found: list[Relation] = field(default_factory=list)
    #: What takes no arguments, without its errors and with them, by the identity of what it was.
    _closed: dict[int, tuple[Relation, Relation, Failures]] = field(default_factory=dict)
    #: What each was found for all rows of, by the identities of both: it may be there in many places.
    _added: set[tuple[int, int]] = field(default_factory=set)

    def beside(self, by: int) -> Failures:
        """Returns what collects the errors of a part that is computed for another domain, of `by` columns."""
        return Failures(self.sharing, by, _closed=self._closed)

    def known(self, closed: Relation) -> tuple[Relation, Failures] | None:
        """Returns a plan that takes no arguments without its errors, and these, if that is known."""
        found = self._closed.get(id(closed))
        return None if found is None else found[1:]

    def know(self, closed: Relation, without: Relation, own: Failures) -> None:
        """Notes what `known` returns; the plan may be there in many places."""
        self._closed[id(closed)] = closed, without, own

    def add_for_all(self, domain: Relation, closed: Failures) -> None:
        """Adds the errors of a plan that takes no arguments: each row of the domain has them."""
        for one in closed.found:
            if (id(domain), id(one)) not in self._added:
                self._added.add((id(domain), id(one)))
                beside = one if domain is ONE_ROW else projected_to(Join((domain, one), ()), self._places(domain))
                self.found.append(beside)

    def caught(self, rows: Relation) -> Relation:
        """Returns a plan that takes no arguments without its errors; adds those."""
        both = self.sharing.shared(CatchErrors(rows))
        width = rows.relation_type.arity
        self.found.append(projected_to(Filter(both, (_is_told(both),)), (width,)))
        is_right = Call("is_null", (reference(both.relation_type, width),), BOOL, False)
        return projected_to(Filter(both, (is_right,)), range(width))

    def add_looked_up(self, rows: Relation, places: Sequence[int], other: Failures) -> None:
        """Adds the errors of another domain, whose columns are at `places` of rows that begin with this domain's."""
        width = rows.relation_type.arity
        for one in other.found:
            classes = tuple(
                (reference(rows.relation_type, place), shifted(reference(one.relation_type, n), width))
                for n, place in enumerate(places)
            )
            joined = Join((rows, one), classes, frozenset(range(len(classes))))
            self.found.append(projected_to(joined, (*range(self.by), width + other.by)))

    def taken(self, rows: Relation, scalars: Sequence[Scalar]) -> tuple[Relation, tuple[Scalar, ...]]:
        """Returns rows, and scalars over them without the errors that these have; adds those."""
        failing = [one for one in scalars if can_fail(one)]
        if not failing:
            return rows, tuple(scalars)
        rows = self.sharing.shared(rows)
        texts = tuple(Call("error_of", (one,), TEXT) for one in failing)
        text = texts[0] if len(texts) == 1 else Call("coalesce", texts, TEXT)
        told = Map(rows, (text,), (_ERROR,))
        self.found.append(projected_to(Filter(told, (_is_told(told),)), self._places(rows)))
        return rows, tuple(total(one) for one in scalars)

    def without_group_errors(self, relation: Reduce | Window) -> Relation:
        """Returns a plan, the domain's columns in front, without the errors of its topmost operator; adds those."""
        if not group_may_fail(relation):
            return relation
        rows, columns = self.taken(*without_group_errors(relation, self.sharing))
        names = tuple(one.name for one in relation.relation_type.columns)
        width = rows.relation_type.arity
        return projected_to(Map(rows, columns, names), range(width, width + len(columns)))

    def bounded(self, rows: Relation, bounds: Sequence[Scalar]) -> Relation:
        """Returns rows at the times that comparisons with `mz_now()` say; adds what fails in these."""
        others = [other for one in bounds for _, other in filter(None, (comparison_with_now(one),))]
        rows, bounding = self.taken(rows, others)
        safe = dict(zip(others, bounding, strict=True))
        return Filter(rows, tuple(substitute(one, safe.get) for one in bounds))

    def _places(self, rows: Relation) -> tuple[int, ...]:
        """Returns the domain's columns, with which rows begin, and the one behind the rows."""
        return (*range(self.by), rows.relation_type.arity)

    def raised(self, asking: Relation, type_: RelationType) -> Relation:
        """Returns no rows, of a type, but an error where there are errors and a row that asks.

        Args:
            asking: The row without columns, if somebody asks. Where the domain has columns, its rows are who does.
            type_: What the rows would be of.
        """
        told = self.found[0] if len(self.found) == 1 else Union(tuple(self.found))
        told = told if self.by else Join((asking, told), ())
        text = reference(told.relation_type, self.by)
        none = Filter(told, (Call("error", (text,), BOOL, False),))
        columns = [Call("error", (text,), one.type, one.nullable) for one in type_.columns]
        rows = Map(none, tuple(columns), tuple(one.name for one in type_.columns)) if columns else none
        return projected_to(rows, range(self.by + 1, self.by + 1 + len(columns)))

    def said(self, answers: Relation, sharing: Sharing) -> Relation:
        """Returns the answers for a domain with a column for the error, NULL where there is none.

        Args:
            answers: The domain's columns, then what the subquery says.
            sharing: Takes what is read twice.
        """
        columns = answers.relation_type.columns[self.by :]
        below = self.found[0] if len(self.found) == 1 else Union(tuple(self.found))
        least = Aggregate(AggregateFunction.MIN, (self.by,), TEXT)
        told: Relation = Reduce(below, tuple(range(self.by)), (least,), (_ERROR,))
        if not self.by:  # which has its row without any
            told = Filter(told, (_is_told(told),))
        told, answers = sharing.shared(told), sharing.shared(answers)
        keys = projected_to(told, range(self.by))
        own = [reference(answers.relation_type, n) for n in range(self.by)]
        found = semijoin(answers, own, keys, null_safe=True)
        # What is never NULL, as whether there are rows, stays so.
        nothing = [Literal(False if one.type == BOOL and not one.nullable else None, one.type) for one in columns]
        wrong = Map(told, tuple(nothing), tuple(one.name for one in columns))
        places = (*range(self.by), *range(self.by + 1, self.by + 1 + len(columns)), self.by)
        right = Map(minus(answers, found), (Literal(None, TEXT),), (_ERROR,))
        return Union((right, projected_to(wrong, places)), frozenset({frozenset(range(self.by))}))


def in_turn(predicates: Sequence[Scalar]) -> Scalar:
    """Returns whether all predicates are true, each asked if those before it are; as a filter does, unlike `and`."""
    *before, found = predicates
    for one in reversed(before):
        found = If(one, found, Literal(False, BOOL))
    return found


def total(scalar: Scalar) -> Scalar:
    """Returns `scalar`, NULL where it fails."""
    return Call("without_error", (scalar,), scalar.type) if can_fail(scalar) else scalar


def raising(answer: Scalar, error: ColumnRef) -> Scalar:
    """Returns an answer that is an error, wherever it is evaluated, where `error` says one."""
    is_right = Call("is_null", (error,), BOOL, False)
    return If(is_right, answer, Call("error", (error,), answer.type, False))


def with_keys_mapped(join: Join) -> Relation:
    """Returns an equal plan in which what a join compares is computed below it, if that can fail."""
    inputs = list(join.inputs)
    places = {
        offset + n: (number, n)
        for number, (offset, one) in enumerate(zip(join.offsets, join.inputs, strict=True))
        for n in range(one.relation_type.arity)
    }
    computed: dict[Scalar, tuple[int, int]] = {}
    for scalar in dict.fromkeys(each for members in join.equivalences for each in members if can_fail(each)):
        columns = sorted(columns_of(scalar))
        owner = places[columns[0]][0] if columns else None
        if owner is not None and all(places[column][0] == owner for column in columns):
            below = inputs[owner]
            own = moved(scalar, {column: places[column][1] for column in columns})
            computed[scalar] = owner, below.relation_type.arity
            inputs[owner] = Map(below, (own,), ("key",))
    if not computed:
        return join
    starts = [0]
    for one in inputs:
        starts.append(starts[-1] + one.relation_type.arity)
    there = {column: starts[number] + n for column, (number, n) in places.items()}

    def placed(scalar: Scalar) -> Scalar:
        if scalar not in computed:
            return moved(scalar, there)
        number, n = computed[scalar]
        return ColumnRef(starts[number] + n, scalar.type, scalar.nullable)

    classes = tuple(tuple(placed(one) for one in members) for members in join.equivalences)
    return projected_to(replace(join, inputs=tuple(inputs), equivalences=classes), [there[n] for n in sorted(there)])


def _is_told(relation: Relation) -> Scalar:
    """Returns whether the last column is not NULL."""
    last = reference(relation.relation_type, relation.relation_type.arity - 1)
    return Call("is_not_null", (last,), BOOL, False)
