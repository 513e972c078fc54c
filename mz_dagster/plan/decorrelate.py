"""Subqueries and lateral joins become plain relations.

Owns the meaning of `Subquery`, `DependentJoin` and `OuterColumn`. A dependent plan is a function of its arguments. It
is computed for all of them at once: for a *domain*, the distinct rows of arguments, `applied(plan, domain)` is the
plan's rows beside the domain's row that they are for. The domain is pushed through every operator down to the closed
subplans, beside which it stands in a join:

    applied(closed, D)       =  D x closed
    applied(Filter[p] R, D)  =  Filter[p] applied(R, D)            and so Map, Project, Union, Negate, Threshold
    applied(Join(R, S), D)   =  Join(applied(R, D), applied(S, D)) equal in D's columns
    applied(Reduce[k] R, D)  =  Reduce[D's columns, k] applied(R, D)    and so TopK's group, Window's partition

What is asked of the rows becomes one row for each row of the domain: a value, or NULL where there is none; whether
there are any; for a test, true or NULL where it is so for some, else false. That is joined back to the rows which gave
the arguments, NULL equal to NULL. A scalar subquery of several rows is an error of the data, raised in a filter that
passes nothing: it is there for every row of the domain, whether or not its value is used.

A conjunct of a filter that is `EXISTS`, `IN`, or the negation of `EXISTS`, becomes a semijoin or its complement. If
what ties it to the outer row is equalities only, it is with the distinct values of the inner side, and there is no
domain. The conjuncts without subqueries are applied first: subqueries are only asked for what they leave.

A lateral relation of linear operators over the one row, as table functions are, is applied to the rows themselves.

The domain is of the arguments of all rows that ask, or of more where that is cheaper (`domain.py`), which is allowed
where a subquery may be asked early: in a filter, if it is no error for several rows. Memberships of one filter that ask
for the same arguments have one domain; if one of them is not negated, they are counted together and looked up once.

Cost: a distinct of the arguments for each subquery, and the joins with it. A test `IN` of one column that may be NULL
on either side costs two lookups more; other tests that may be NULL compare each row of the domain with each row of the
subquery.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from mz_dagster.errors import InternalError
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.dependence import (
    free_columns,
    is_dependent,
    outer_columns,
    with_free_columns,
    with_outer_columns,
)
from mz_dagster.plan.domain import domain_source
from mz_dagster.plan.relation import (
    Aggregate,
    AggregateFunction,
    ColumnOrder,
    Constant,
    DependentJoin,
    Filter,
    FlatMap,
    Get,
    Join,
    Let,
    Map,
    Negate,
    Project,
    Reduce,
    Relation,
    RepeatRow,
    TemporalFilter,
    Threshold,
    TopK,
    Union,
    Window,
    inputs_of,
)
from mz_dagster.plan.representations import told_again, told_apart
from mz_dagster.plan.rewriting import (
    conjuncts,
    filtered,
    moved,
    projected_to,
    reference,
    scalars_of,
    shifted,
    with_inputs,
)
from mz_dagster.plan.row_count import at_least_one_row, at_most_one_row
from mz_dagster.plan.scalar import (
    Call,
    ColumnRef,
    If,
    Literal,
    OuterColumn,
    Scalar,
    Subquery,
    SubqueryKind,
    columns_of,
    substitute,
    walk,
)
from mz_dagster.plan.semijoin import (
    ONE_ROW,
    LocalId,
    Sharing,
    distinct_of,
    minus,
    semijoin,
    with_literals,
    with_scalars,
)
from mz_dagster.plan.tied_subquery import compared, tied_subquery
from mz_dagster.plan.types import BOOL, INT8, TEXT

_SEVERAL = "21000 more than one row returned by a subquery used as an expression"


def decorrelate(relation: Relation, local_id: LocalId) -> Relation:
    """Returns an equal plan without subqueries and dependent joins; itself if it has none.

    Args:
        relation: Closed: no `OuterColumn` is free in it.
        local_id: Gives out ids for shared subplans.
    """
    return _Decorrelation(local_id).plain(relation)


@dataclass(slots=True)
class _Decorrelation:
    local_id: LocalId

    def plain(self, relation: Relation) -> Relation:
        """Returns a closed relation without subqueries."""
        match relation:
            case Map() if _asks(relation.scalars):
                return self._mapped(self.plain(relation.input), relation.scalars, relation.names)
            case Filter() if _asks(relation.predicates):
                return self._filtered(self.plain(relation.input), relation.predicates)
            case DependentJoin():
                return self._beside(self.plain(relation.left), relation.right, relation.arguments)
            case Join() | TemporalFilter() if _asks(scalars_of(relation)):
                raise InternalError(f"a subquery stands in a {type(relation).__name__}")
            case _:
                return with_inputs(relation, [self.plain(one) for one in inputs_of(relation)])

    # The domain pushed down.

    def applied(self, relation: Relation, domain: Relation, local: Mapping[GlobalId, Get]) -> Relation:
        """Returns `relation` for each row of `domain`: the domain's columns, then its own.

        Args:
            relation: Dependent; `OuterColumn` number i is the domain's column i.
            domain: Distinct, and plain.
            local: The dependent subplans that are bound around, by what reads them with the domain's columns in front.
        """
        if not is_dependent(relation, local):
            closed = self.plain(relation)
            if closed is ONE_ROW:
                return domain
            return closed if domain is ONE_ROW else Join((domain, closed), ())
        by = domain.relation_type.arity
        match relation:
            case Get():
                return local[relation.id]
            case Map():
                below = self.applied(relation.input, domain, local)
                return self._mapped(below, self._over(relation.scalars, domain), relation.names)
            case Filter():
                below = self.applied(relation.input, domain, local)
                return self._filtered(below, self._over(relation.predicates, domain))
            case Project():
                below = self.applied(relation.input, domain, local)
                return Project(below, (*range(by), *(by + one for one in relation.positions)))
            case Negate() | Threshold() | FlatMap():
                return with_inputs(relation, [self.applied(relation.input, domain, local)])
            case Union():
                keys = (frozenset({*range(by), *(by + one for one in key)}) for key in relation.keys)
                return Union(tuple(self.applied(one, domain, local) for one in relation.inputs), frozenset(keys))
            case Join():
                return self._joined(relation, domain, local)
            case Let():
                return self._let(relation, domain, local)
            case Reduce():
                below = self.applied(relation.input, domain, local)
                key = (*range(by), *(by + one for one in relation.key))
                places = {one: by + one for one in range(relation.input.relation_type.arity)}
                aggregates = tuple(one.moved(places) for one in relation.aggregates)
                return Reduce(below, key, aggregates, relation.names, relation.group_size)
            case TopK():
                below = self.applied(relation.input, domain, local)
                group = (*range(by), *(by + one for one in relation.group))
                return replace(relation, input=below, group=group, order=_shifted_order(relation.order, by))
            case Window():
                below = self.applied(relation.input, domain, local)
                functions = tuple(
                    replace(
                        one,
                        arguments=tuple(by + position for position in one.arguments),
                        filter=None if one.filter is None else by + one.filter,
                    )
                    for one in relation.functions
                )
                partition = (*range(by), *(by + one for one in relation.partition))
                order = _shifted_order(relation.order, by)
                return Window(below, partition, order, functions, relation.names)
            case TemporalFilter():
                below = self.applied(relation.input, domain, local)
                return TemporalFilter(below, self._over(relation.lower, domain), self._over(relation.upper, domain))
            case RepeatRow():
                return RepeatRow(self.applied(relation.input, domain, local), by + relation.count)
            case DependentJoin():
                left = self.applied(relation.left, domain, local)
                return self._beside(left, relation.right, self._over(relation.arguments, domain))
            case Constant():
                raise InternalError("a constant depends on nothing")
            case _:
                assert_never(relation)

    def _over(self, scalars: Sequence[Scalar], domain: Relation) -> tuple[Scalar, ...]:
        """Returns scalars over the columns of the domain followed by those that `scalars` are over."""
        by = domain.relation_type.arity
        return tuple(
            with_outer_columns(shifted(one, by), lambda outer: reference(domain.relation_type, outer.number))
            for one in scalars
        )

    def _joined(self, join: Join, domain: Relation, local: Mapping[GlobalId, Get]) -> Relation:
        """Joins the inputs, of which the dependent ones bring the domain's columns, or the domain itself."""
        by = domain.relation_type.arity
        dependent = [is_dependent(one, local) for one in join.inputs]
        inputs: list[Relation] = [] if any(dependent) else [domain]
        domains: list[int] = [] if any(dependent) else [0]
        places: dict[int, int] = {}
        width = sum(one.relation_type.arity for one in inputs)
        for one, offset, depends in zip(join.inputs, join.offsets, dependent, strict=True):
            inputs.append(self.applied(one, domain, local) if depends else self.plain(one))
            if depends:
                domains.append(width)
                width += by
            places |= {offset + i: width + i for i in range(one.relation_type.arity)}
            width += one.relation_type.arity
        first, *others = domains

        def placed(scalar: Scalar) -> Scalar:
            return with_outer_columns(
                moved(scalar, places), lambda outer: shifted(reference(domain.relation_type, outer.number), first)
            )

        own = tuple(tuple(placed(scalar) for scalar in one) for one in join.equivalences)
        same = tuple(
            tuple(shifted(reference(domain.relation_type, i), start) for start in domains)
            for i in range(by if others else 0)
        )
        safe = join.null_safe | {len(own) + i for i in range(len(same))}
        whole = Join(tuple(inputs), own + same, frozenset(safe))
        return projected_to(whole, (*range(first, first + by), *(places[i] for i in range(len(places)))))

    def _let(self, let: Let, domain: Relation, local: Mapping[GlobalId, Get]) -> Relation:
        """Binds a dependent subplan with the domain's columns in front, another as it is."""
        if not is_dependent(let.value, local):
            inner = {identity: get for identity, get in local.items() if identity != let.id}
            return Let(let.id, self.plain(let.value), self.applied(let.body, domain, inner))
        value = self.applied(let.value, domain, local)
        identity = self.local_id()
        body = self.applied(let.body, domain, {**local, let.id: Get(identity, value.relation_type)})
        return Let(identity, value, body)

    # What rows are asked.

    def _mapped(self, below: Relation, scalars: Sequence[Scalar], names: Sequence[str]) -> Relation:
        """Returns `below` with columns appended; the scalars, over `below` and each other, may have subqueries."""
        if not _asks(scalars):
            return Map(below, tuple(scalars), tuple(names))
        arity = below.relation_type.arity
        if any(position >= arity for one in scalars for position in columns_of(one)):
            for scalar, name in zip(scalars, names, strict=True):
                below = self._mapped(below, (scalar,), (name,))
            return below
        whole, plain = self._answered(below, scalars)
        width = whole.relation_type.arity
        mapped = Map(whole, tuple(plain), tuple(names))
        return projected_to(mapped, (*range(arity), *range(width, width + len(plain))))

    def _filtered(self, below: Relation, predicates: Sequence[Scalar]) -> Relation:
        """Returns the rows of `below` that pass; the predicates may have subqueries."""
        parts = [one for predicate in predicates for one in conjuncts(predicate)]
        below = filtered(below, [one for one in parts if not _asks((one,))])
        rest = [one for one in parts if _asks((one,)) and _membership(one) is None]
        memberships = [membership for one in parts if (membership := _membership(one)) is not None]
        sharing = Sharing(self.local_id)
        together = _asked_together(memberships)
        if together:
            below = self._passing(sharing.shared(below), together)
        asking: Relation | None = None
        for subquery, negated in memberships:
            if (subquery, negated) in together:
                continue
            below = sharing.shared(below)
            if asking is None and tied_subquery(subquery) is None:
                asking = below
            found = self._found(below, subquery, asking)
            below = minus(below, found) if negated else found
        if rest:
            whole, plain = self._answered(below, rest, in_filter=True)
            below = projected_to(Filter(whole, tuple(plain)), range(below.relation_type.arity))
        return sharing.bound(below)

    def _found(self, below: Relation, subquery: Subquery, asking: Relation | None) -> Relation:
        """Returns the rows of `below` for which the subquery, `EXISTS` or `ANY`, is true.

        Args:
            below: The rows.
            subquery: What is asked for them.
            asking: What has all rows of `below`, and perhaps others, for which another subquery is asked: for the same
                arguments the two have one domain.
        """
        arity = below.relation_type.arity
        tied = tied_subquery(subquery)
        if tied is not None:
            arguments = [_with_arguments(outer, subquery.arguments) for outer, _ in tied.pairs]
            whole, arguments = self._answered(below, arguments)
            keys = distinct_of(self.plain(tied.relation), [inner for _, inner in tied.pairs])
            return projected_to(semijoin(whole, arguments, keys, null_safe=False), range(arity))
        sharing = Sharing(self.local_id)
        whole, arguments = self._answered(below, subquery.arguments)
        same = asking if whole is below and not _has_several(subquery) else None
        asked = _Asked.of(subquery.relation, subquery.test, whole, arguments, sharing, asking=same)
        rows = self.applied(asked.relation, asked.domain, {})
        if asked.test is not None:
            rows = Filter(rows, self._over((asked.test,), asked.domain))
        keys = distinct_of(rows, _references(rows, range(len(asked.places))))
        found = semijoin(asked.outer, _references(asked.outer, asked.places), keys, null_safe=True)
        return sharing.bound(projected_to(found, range(arity)))

    def _passing(self, below: Relation, memberships: Sequence[tuple[Subquery, bool]]) -> Relation:
        """Returns the rows of `below` that have, or with True have not, something in each of the subqueries.

        They are `_asked_together`, so one count for each row of the domain tells of all.
        """
        sharing = Sharing(self.local_id)
        found: list[Relation] = []
        counts: list[Aggregate] = []
        conditions: list[Scalar] = []
        for number, (subquery, negated) in enumerate(memberships):
            asked = _Asked.of(subquery.relation, subquery.test, below, subquery.arguments, sharing)
            by = len(asked.places)
            rows = self.applied(asked.relation, asked.domain, {})
            if asked.test is not None:
                rows = Filter(rows, self._over((asked.test,), asked.domain))
            flags = [Literal(True if number == one else None, BOOL) for one in range(len(memberships))]
            found.append(
                with_literals(projected_to(rows, range(by)), flags, [f"in_{n + 1}" for n in range(len(flags))])
            )
            counts.append(Aggregate(AggregateFunction.COUNT, (by + number,), INT8))
            count = ColumnRef(by + number, INT8, False, f"rows_{number + 1}")
            conditions.append(Call("eq_int8" if negated else "gt_int8", (count, Literal(0, INT8)), BOOL, False))
        names = tuple(f"rows_{number + 1}" for number in range(len(counts)))
        counted = Reduce(Union(tuple(found)), tuple(range(by)), tuple(counts), names)
        keys = projected_to(Filter(counted, tuple(conditions)), range(by))
        passing = semijoin(asked.outer, _references(asked.outer, asked.places), keys, null_safe=True)
        return sharing.bound(projected_to(passing, range(below.relation_type.arity)))

    def _beside(self, left: Relation, right: Relation, arguments: Sequence[Scalar]) -> Relation:
        """Returns each row of `left`, which is plain, beside the rows that `right` has for it."""
        arity, added = left.relation_type.arity, right.relation_type.arity
        if not is_dependent(right):
            return Join((left, self.plain(right)), ())
        whole, arguments = self._answered(left, arguments)
        if _is_of_one_row(right):
            return self._beside_each(whole, right, arguments, arity)
        sharing = Sharing(self.local_id)
        asked = _Asked.of(right, None, whole, arguments, sharing)
        rows = self.applied(asked.relation, asked.domain, {})
        width, by = asked.outer.relation_type.arity, len(asked.places)
        joined = _looked_up(asked.outer, [(asked.places, rows)])
        return sharing.bound(projected_to(joined, (*range(arity), *range(width + by, width + by + added))))

    def _beside_each(self, left: Relation, right: Relation, arguments: Sequence[Scalar], kept: int) -> Relation:
        """Returns the first `kept` columns of `left` beside what linear operators make of each row: no domain."""
        wide, places = with_scalars(left, arguments, "argument")
        width, added = wide.relation_type.arity, right.relation_type.arity
        placed = with_free_columns(right, lambda outer: replace(outer, number=places[outer.number]))
        rows = self.applied(placed, wide, {})
        return projected_to(rows, (*range(kept), *range(width, width + added)))

    def _answered(
        self, below: Relation, scalars: Sequence[Scalar], *, in_filter: bool = False
    ) -> tuple[Relation, list[Scalar]]:
        """Returns `below` with a column for what each subquery of `scalars` says, and the scalars over that."""
        plain = list(scalars)
        while _asks(plain):
            ready = dict.fromkeys(
                one
                for scalar in plain
                for one in walk(scalar)
                if isinstance(one, Subquery) and not _asks(one.arguments)
            )
            below, answers = self._with_answers(below, list(ready), in_filter=in_filter)
            plain = [_replaced(scalar, answers) for scalar in plain]
        return below, plain

    def _with_answers(
        self, below: Relation, subqueries: Sequence[Subquery], *, in_filter: bool
    ) -> tuple[Relation, dict[Subquery, ColumnRef]]:
        """Joins what all of the subqueries say to the rows of `below`, at once; their arguments have no subqueries.

        In a filter a subquery may be asked before what else decides of a row, so for more rows.
        """
        sharing = Sharing(self.local_id)
        arguments = [
            told_apart(argument)
            for one in subqueries
            for argument in one.arguments
            if not isinstance(argument, Literal)
        ]
        wide, positions = with_scalars(below, arguments, "argument")
        outer = sharing.shared(wide)
        values = dict(zip(arguments, positions, strict=True))
        looked_up: list[tuple[tuple[int, ...], Relation]] = []
        answers: dict[Subquery, ColumnRef] = {}
        kept = list(range(below.relation_type.arity))
        width = outer.relation_type.arity
        for one in subqueries:
            mine = [
                argument
                if isinstance(argument, Literal)
                else reference(outer.relation_type, values[told_apart(argument)])
                for argument in one.arguments
            ]
            early = in_filter and not _has_several(one)
            asked = _Asked.of(one.relation, one.test, outer, mine, sharing, early=early)
            said = self._said(one.kind, asked, sharing)
            looked_up.append((asked.places, said))
            width += said.relation_type.arity
            answers[one] = ColumnRef(len(kept), one.type, said.relation_type.columns[-1].nullable, "answer")
            kept.append(width - 1)
        return sharing.bound(projected_to(_looked_up(outer, looked_up), kept)), answers

    def _said(self, kind: SubqueryKind, asked: _Asked, sharing: Sharing) -> Relation:
        """Returns, for each row of the domain, its columns and what the subquery says."""
        match kind:
            case SubqueryKind.SCALAR:
                return self._value(asked, sharing)
            case SubqueryKind.EXISTS:
                if at_least_one_row(asked.relation):
                    return _answer(asked.domain, Literal(True, BOOL))
                found = self.applied(asked.relation, asked.domain, {})
                return self._with_false(asked, distinct_of(found, asked.columns_of(found)), None, sharing)
            case SubqueryKind.ANY:
                return self._any(asked, sharing)
            case _:
                assert_never(kind)

    def _value(self, asked: _Asked, sharing: Sharing) -> Relation:
        """Returns the subquery's one value, NULL without a row, and an error where there are several rows."""
        one, some = at_most_one_row(asked.relation), at_least_one_row(asked.relation)
        rows = self.applied(asked.relation, asked.domain, {})
        if one and some:
            return rows
        rows = sharing.shared(rows)
        parts = [rows]
        by, type_ = len(asked.places), rows.relation_type.columns[-1].type
        if not one:
            counted = Reduce(rows, tuple(range(by)), (Aggregate(AggregateFunction.COUNT, (), INT8),), ("rows",))
            several = Call("gt_int8", (ColumnRef(by, INT8, False, "rows"), Literal(1, INT8)), BOOL, False)
            error = Call("error", (Literal(_SEVERAL, TEXT),), BOOL, False)
            failing = Filter(counted, (If(several, error, Literal(False, BOOL)),))
            parts.append(_answer(projected_to(failing, range(by)), Literal(None, type_)))
        if not some:
            without = minus(asked.domain, distinct_of(rows, asked.columns_of(rows)))
            parts.append(_answer(without, Literal(None, type_)))
        return Union(tuple(parts), frozenset({frozenset(range(by))}))

    def _any(self, asked: _Asked, sharing: Sharing) -> Relation:
        """Returns true where the test is true for some row, else NULL where it is NULL for some, else false."""
        assert asked.test is not None
        by = len(asked.places)
        # What the query itself takes; the test may take more.
        own = tuple(sorted(free_columns(asked.relation)))
        domain = asked.domain
        if len(own) < by:
            domain = sharing.shared(distinct_of(asked.domain, _references(asked.domain, own))) if own else ONE_ROW
        places = {number: new for new, number in enumerate(own)}
        relation = with_free_columns(asked.relation, lambda outer: replace(outer, number=places[outer.number]))
        rows = sharing.shared(self.applied(relation, domain, {}))
        joined = _looked_up(asked.domain, [(own, rows)]) if by else rows
        width = asked.relation.relation_type.arity
        start = by + len(own) if by else 0
        whole = projected_to(joined, (*range(by), *range(start, start + width)))
        (test,) = self._over((asked.test,), asked.domain)
        true = distinct_of(Filter(whole, (test,)), _references(whole, range(by)))
        if not test.nullable:
            return self._with_false(asked, true, None, sharing)
        sides = compared(asked.test)
        if sides is None:
            unknown = [distinct_of(Filter(whole, (_is_null(test),)), _references(whole, range(by)))]
        else:
            # Equality is NULL where a side is: each side is looked at alone.
            (outer,) = self._over((sides[0],), asked.domain)
            inner = shifted(sides[1], len(own))
            columns = _references(rows, range(len(own)))
            unknown = []
            if inner.nullable:
                keys = distinct_of(Filter(rows, (_is_null(inner),)), columns)
                unknown.append(semijoin(asked.domain, _references(asked.domain, own), keys, null_safe=True))
            if outer.nullable:
                nulls = Filter(asked.domain, (_is_null(outer),))
                keys = distinct_of(rows, columns)
                unknown.append(semijoin(nulls, _references(asked.domain, own), keys, null_safe=True))
        return self._with_false(asked, true, unknown, sharing)

    def _with_false(
        self, asked: _Asked, true: Relation, unknown: Sequence[Relation] | None, sharing: Sharing
    ) -> Relation:
        """Returns the answer of each row of the domain: whether it is in `true`, else NULL if it is in `unknown`."""
        by = len(asked.places)
        if unknown is None:
            found: Relation = sharing.shared(true)
            said = _answer(found, Literal(True, BOOL))
        else:
            flagged = Union(
                (_answer(true, Literal(True, BOOL)), *(_answer(one, Literal(None, BOOL)) for one in unknown))
            )
            trues = Aggregate(AggregateFunction.COUNT, (by,), INT8)
            counted = sharing.shared(Reduce(flagged, tuple(range(by)), (trues,), ("trues",)))
            found = projected_to(counted, range(by))
            some = Call("gt_int8", (ColumnRef(by, INT8, False, "trues"), Literal(0, INT8)), BOOL, False)
            answered = _answer(counted, If(some, Literal(True, BOOL), Literal(None, BOOL)))
            said = projected_to(answered, (*range(by), by + 1))
        false = _answer(minus(asked.domain, found), Literal(False, BOOL))
        return Union((said, false), frozenset({frozenset(range(by))}))


@dataclass(frozen=True, slots=True)
class _Asked:
    """Is a dependent plan with the domain for which it is asked.

    Attributes:
        relation: The plan; its `OuterColumn`s are the domain's columns.
        test: Over the plan's columns and the domain's.
        outer: The rows that ask, with columns for the arguments.
        places: Where in `outer` the domain's columns are.
        domain: The distinct rows of arguments.
    """

    relation: Relation
    test: Scalar | None
    outer: Relation
    places: tuple[int, ...]
    domain: Relation

    @classmethod
    def of(
        cls,
        relation: Relation,
        test: Scalar | None,
        outer: Relation,
        arguments: Sequence[Scalar],
        sharing: Sharing,
        *,
        early: bool = False,
        asking: Relation | None = None,
    ) -> _Asked:
        """Returns the plan over the domain of the arguments that it reads; `outer` gets columns for them.

        If it may be asked `early`, the domain may have more rows; those of `asking` if there is such a relation, in
        which the arguments are computed as in `outer`.
        """
        # What is equal may not be the same to the functions in the plan.
        arguments = [one if isinstance(one, Literal) else told_apart(one) for one in arguments]
        used = sorted(free_columns(relation) | (frozenset() if test is None else outer_columns(test)))
        computed = [arguments[one] for one in used if not isinstance(arguments[one], Literal)]
        wide, positions = with_scalars(outer, computed, "argument")
        if not computed:
            domain: Relation = ONE_ROW
        else:
            wide = sharing.shared(wide)
            source, columns = wide, tuple(dict.fromkeys(positions))
            if asking is not None:
                source, _ = with_scalars(asking, computed, "argument")
            elif early:
                source, columns = domain_source(wide, columns, dict(sharing.lets))
            domain = sharing.shared(distinct_of(source, _references(source, columns)))
        places = tuple(dict.fromkeys(positions))
        position_of = dict(zip(computed, positions, strict=True))

        def renumbered(column: OuterColumn) -> Scalar:
            argument = arguments[column.number]
            if isinstance(argument, Literal):
                return argument
            number = places.index(position_of[argument])
            return told_again(replace(column, number=number, type=argument.type), column.type)

        own_test = None if test is None else with_outer_columns(test, renumbered)
        return cls(with_free_columns(relation, renumbered), own_test, wide, places, domain)

    def columns_of(self, rows: Relation) -> tuple[ColumnRef, ...]:
        """Returns what reads the domain's columns in `rows`, which begin with them."""
        return _references(rows, range(len(self.places)))


def _looked_up(outer: Relation, answers: Sequence[tuple[Sequence[int], Relation]]) -> Relation:
    """Joins to the rows of `outer` relations that begin with columns equal, NULL to NULL, to those at given places."""
    classes: list[tuple[Scalar, ...]] = []
    width = outer.relation_type.arity
    for places, rows in answers:
        classes += [
            (reference(outer.relation_type, place), shifted(reference(rows.relation_type, i), width))
            for i, place in enumerate(places)
        ]
        width += rows.relation_type.arity
    inputs = (outer, *(rows for _, rows in answers))
    return Join(inputs, tuple(classes), frozenset(range(len(classes))))


def _is_of_one_row(relation: Relation) -> bool:
    """Returns whether `relation` is linear operators over the one row without columns."""
    match relation:
        case Map() | Filter() | Project() | FlatMap():
            return not _asks(scalars_of(relation)) and _is_of_one_row(relation.input)
        case _:
            return relation is ONE_ROW


def _membership(predicate: Scalar) -> tuple[Subquery, bool] | None:
    """Returns the subquery of a conjunct that passes the rows that have, or with True have not, something in it."""
    match predicate:
        case Subquery(kind=SubqueryKind.EXISTS | SubqueryKind.ANY):
            return predicate, False
        case Call(function="not", arguments=(Subquery() as subquery,)):
            # Where the test may be NULL, a negated ANY passes less than what a semijoin leaves.
            if subquery.kind is not SubqueryKind.SCALAR and not subquery.nullable:
                return subquery, True
    return None


def _asked_together(memberships: Sequence[tuple[Subquery, bool]]) -> list[tuple[Subquery, bool]]:
    """Returns those that are asked for the same arguments, by a domain, with one not negated; none if it is one alone.

    A row of the domain for which none of them has anything does not pass then, so it need not be counted.
    """
    for first, negated in memberships:
        alike = [
            (one, other)
            for one, other in memberships
            if one.arguments == first.arguments
            and one.arguments
            and _used(one) == _used(first)
            and tied_subquery(one) is None
            and not _has_several(one)
            and not _asks(one.arguments)
        ]
        if not negated and len(alike) > 1:
            return alike
    return []


def _used(subquery: Subquery) -> frozenset[int]:
    """Returns the numbers of the arguments that a subquery reads."""
    tested = frozenset[int]() if subquery.test is None else outer_columns(subquery.test)
    return free_columns(subquery.relation) | tested


def _has_several(subquery: Subquery) -> bool:
    """Returns whether a subquery may be an error because one in it, or itself, has several rows."""
    own = subquery.kind is SubqueryKind.SCALAR and not at_most_one_row(subquery.relation)
    return own or _several_below(subquery.relation) or any(map(_several_in, subquery.arguments))


def _several_below(relation: Relation) -> bool:
    return any(map(_several_in, scalars_of(relation))) or any(map(_several_below, inputs_of(relation)))


def _several_in(scalar: Scalar) -> bool:
    return any(_has_several(one) for one in walk(scalar) if isinstance(one, Subquery))


def _asks(scalars: Sequence[Scalar]) -> bool:
    return any(isinstance(one, Subquery) for scalar in scalars for one in walk(scalar))


def _replaced(scalar: Scalar, answers: Mapping[Subquery, ColumnRef]) -> Scalar:
    """Returns `scalar` with the columns that say what its subqueries say."""
    return substitute(scalar, lambda one: answers.get(one) if isinstance(one, Subquery) else None)


def _with_arguments(scalar: Scalar, arguments: Sequence[Scalar]) -> Scalar:
    return with_outer_columns(scalar, lambda outer: arguments[outer.number])


def _references(relation: Relation, positions: Iterable[int]) -> tuple[ColumnRef, ...]:
    return tuple(reference(relation.relation_type, one) for one in positions)


def _answer(relation: Relation, answer: Scalar) -> Relation:
    return Map(relation, (answer,), ("answer",))


def _is_null(scalar: Scalar) -> Scalar:
    return Call("is_null", (scalar,), BOOL, False)


def _shifted_order(order: Sequence[ColumnOrder], by: int) -> tuple[ColumnOrder, ...]:
    return tuple(replace(one, position=by + one.position) for one in order)
