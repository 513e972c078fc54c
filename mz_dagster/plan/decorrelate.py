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
the arguments, NULL equal to NULL. A scalar subquery of several rows is an error of the data only where its value is
evaluated: the scalar that takes it raises it, and is guarded as `1/0` is. So is, where not every row asks for it, what
fails within a subquery (`subquery_errors`).

A conjunct of a filter that is `EXISTS`, `IN`, or the negation of `EXISTS`, becomes a semijoin or its complement. If
what ties it to the outer row is equalities only, it is with the distinct values of the inner side, and there is no
domain. The conjuncts without subqueries are applied first: subqueries are only asked for what they leave. One that may
fail is computed for the rows that ask, or its errors are errors if there is any.

A lateral relation of linear operators over the one row, as table functions are, is applied to the rows themselves.

The domain is of the arguments of all rows that ask, or of more where that is cheaper (`domain.py`), which is allowed
where a subquery may be asked early: in a filter. Memberships of one filter that ask
for the same arguments have one domain; if one of them is not negated, they are counted together and looked up once.

Cost: a distinct of the arguments for each subquery, and the joins with it. A test `IN` of one column that may be NULL
on either side costs two lookups more; other tests that may be NULL compare each row of the domain with each row of the
subquery.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from mz_dagster.errors import InternalError
from mz_dagster.formalism import GlobalId
from mz_dagster.functions.aggregates.algebra import AggregateFunction
from mz_dagster.plan.dependence import (
    free_columns,
    is_dependent,
    with_free_columns,
    with_outer_columns,
)
from mz_dagster.plan.domain_plan import DomainPlan, looked_up
from mz_dagster.plan.early_correlation import with_correlation_first
from mz_dagster.plan.equality_correlation import compared, equality_correlation
from mz_dagster.plan.properties import let_through, over
from mz_dagster.plan.relation import (
    Aggregate,
    Constant,
    DependentJoin,
    Filter,
    FlatMap,
    Get,
    Join,
    Let,
    Map,
    OneInput,
    Projection,
    Reduce,
    Relation,
    TemporalFilter,
    TopK,
    Union,
    Window,
    inputs_of,
    query_of,
)
from mz_dagster.plan.representations import by_representation
from mz_dagster.plan.rewriting import (
    can_fail,
    conjuncts,
    filtered,
    moved,
    nodes_of,
    projected_to,
    reference,
    references,
    scalars_of,
    shifted,
    with_inputs,
)
from mz_dagster.plan.row_count import at_least_one_row, at_most_one_row, is_one_row
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
from mz_dagster.plan.single_row import row_and_value
from mz_dagster.plan.subquery_conjuncts import asked_together, has_subqueries, membership_of
from mz_dagster.plan.subquery_errors import (
    Failures,
    asked_by_some,
    in_turn,
    is_guarded,
    may_fail,
    raising,
    subquery_may_fail,
    total,
    with_keys_mapped,
)
from mz_dagster.plan.transform.fold_constants import with_constant_calls
from mz_dagster.plan.transform.temporal_filters import is_temporal, without_not
from mz_dagster.plan.unread_subqueries import without_unread_subqueries
from mz_dagster.scalars.scalar import (
    Call,
    ColumnRef,
    If,
    Literal,
    Scalar,
    Subquery,
    SubqueryKind,
    columns_of,
    substitute,
    walk,
)
from mz_dagster.scalars.types import BOOL, INT8, TEXT

_SEVERAL = "21000 more than one row returned by a subquery used as an expression"


def decorrelate(relation: Relation, local_id: LocalId) -> Relation:
    """Returns an equal plan without subqueries and dependent joins; itself if it has none.

    Args:
        relation: Closed: no `OuterColumn` is free in it.
        local_id: Gives out ids for shared subplans.
    """
    if any(isinstance(one, DependentJoin) or has_subqueries(scalars_of(one)) for one in nodes_of(relation)):
        relation = with_constant_calls(relation)  # which else is the optimizer's: a parameter is found in what is bound
    return _Decorrelation(local_id).plain(without_unread_subqueries(relation))


@dataclass(slots=True)
class _Decorrelation:
    local_id: LocalId
    #: What was closed and is plain, by the identity of what it was: it may be there in many places.
    _plain: dict[int, tuple[Relation, Relation]] = field(default_factory=dict)
    #: What was bound around and takes no arguments.
    _lets: dict[GlobalId, Relation] = field(default_factory=dict)

    def plain(self, relation: Relation) -> Relation:
        """Returns a closed relation without subqueries."""
        if id(relation) not in self._plain:
            self._plain[id(relation)] = relation, self._decorrelated(relation)
        return self._plain[id(relation)][1]

    def _decorrelated(self, relation: Relation) -> Relation:
        match relation:
            case Map() if has_subqueries(relation.scalars):
                return self._mapped(self.plain(relation.input), relation.scalars, relation.names)
            case Filter() if has_subqueries(relation.predicates):
                return self._filtered(self.plain(relation.input), relation.predicates)
            case DependentJoin():
                return self._beside(self.plain(relation.left), relation.right, relation.arguments)
            case Let():
                self._lets[relation.id] = relation.value
                return with_inputs(relation, [self.plain(one) for one in inputs_of(relation)])
            case Join() | TemporalFilter() if has_subqueries(scalars_of(relation)):
                raise InternalError(f"a subquery stands in a {type(relation).__name__}")
            case _:
                return with_inputs(relation, [self.plain(one) for one in inputs_of(relation)])

    # The domain pushed down.

    def applied(
        self, relation: Relation, domain: Relation, local: Mapping[GlobalId, Get], failures: Failures | None
    ) -> Relation:
        """Returns `relation` for each row of `domain`: the domain's columns, then its own.

        Args:
            relation: Dependent; `OuterColumn` number i is the domain's column i.
            domain: Distinct, and plain.
            local: The dependent subplans that are bound around, by what reads them with the domain's columns in front.
            failures: What takes the errors of `relation` by the row of the domain, so that it has none; None to leave
                them in it.
        """
        if not is_dependent(relation, local):
            if failures is None or not may_fail(relation, self._lets):
                closed = self.plain(relation)
                if closed is ONE_ROW:
                    return domain
                return closed if domain is ONE_ROW else Join((domain, closed), ())
            closed = self._closed(relation, domain, failures)
            return closed if domain is ONE_ROW else Join((domain, closed), ())
        return self._pushed(relation, domain, local, failures)

    def _pushed(
        self, relation: Relation, domain: Relation, local: Mapping[GlobalId, Get], failures: Failures | None
    ) -> Relation:
        """Returns what `applied` does, with the domain pushed through the topmost operator."""
        by = domain.relation_type.arity
        match relation:
            case Get():
                return local[relation.id]
            case Map():
                below = self.applied(relation.input, domain, local, failures)
                return self._mapped(below, self._over(relation.scalars, domain), relation.names, failures)
            case Filter():
                below = self.applied(relation.input, domain, local, failures)
                return self._filtered(below, self._over(relation.predicates, domain), failures)
            case Union():
                keys = (frozenset({*range(by), *(by + one for one in key)}) for key in relation.keys)
                return Union(
                    tuple(self.applied(one, domain, local, failures) for one in relation.inputs), frozenset(keys)
                )
            case Join():
                return self._joined(relation, domain, local, failures)
            case Let():
                return self._let(relation, domain, local, failures)
            case TemporalFilter():
                below = self.applied(relation.input, domain, local, failures)
                lower, upper = self._over(relation.lower, domain), self._over(relation.upper, domain)
                if failures is not None:
                    below, bounds = failures.taken(below, (*lower, *upper))
                    lower, upper = bounds[: len(lower)], bounds[len(lower) :]
                return TemporalFilter(below, lower, upper)
            case DependentJoin():
                left = self.applied(relation.left, domain, local, failures)
                return self._beside(left, relation.right, self._over(relation.arguments, domain), failures)
            case Constant():
                raise InternalError("a constant depends on nothing")
            case _:
                below = self.applied(relation.input, domain, local, failures)
                places = {one: by + one for one in range(relation.input.relation_type.arity)}
                beside = _apart_by_domain(over(relation, below, places), by)
                if failures is not None and isinstance(beside, Reduce | Window):
                    return failures.without_group_errors(beside)
                return beside

    def _over(self, scalars: Sequence[Scalar], domain: Relation) -> tuple[Scalar, ...]:
        """Returns scalars over the columns of the domain followed by those that `scalars` are over."""
        by = domain.relation_type.arity
        return tuple(
            with_outer_columns(shifted(one, by), lambda outer: reference(domain.relation_type, outer.number))
            for one in scalars
        )

    def _closed(self, relation: Relation, domain: Relation, failures: Failures | None) -> Relation:
        """Returns a closed relation without subqueries, its errors being all of the domain's."""
        plain = self.plain(relation)
        if failures is None or not may_fail(relation, self._lets):
            return plain
        known = failures.known(relation)
        if known is None:
            own = failures.beside(0)
            known = own.caught(plain), own
            failures.know(relation, *known)
        failures.add_for_all(domain, known[1])
        return known[0]

    def _joined(
        self, join: Join, domain: Relation, local: Mapping[GlobalId, Get], failures: Failures | None
    ) -> Relation:
        """Joins the inputs, of which the dependent ones bring the domain's columns, or the domain itself."""
        if failures is not None:
            mapped = with_keys_mapped(join)
            if mapped is not join:
                return self.applied(mapped, domain, local, failures)
        by = domain.relation_type.arity
        dependent = [is_dependent(one, local) for one in join.inputs]
        inputs: list[Relation] = [] if any(dependent) else [domain]
        domains: list[int] = [] if any(dependent) else [0]
        places: dict[int, int] = {}
        width = sum(one.relation_type.arity for one in inputs)
        for one, offset, depends in zip(join.inputs, join.offsets, dependent, strict=True):
            inputs.append(
                self.applied(one, domain, local, failures) if depends else self._closed(one, domain, failures)
            )
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

    def _let(self, let: Let, domain: Relation, local: Mapping[GlobalId, Get], failures: Failures | None) -> Relation:
        """Binds a dependent subplan with the domain's columns in front, another as it is."""
        if is_dependent(let.value, local):
            value = self.applied(let.value, domain, local, failures)
            identity = self.local_id()
            inner = {**local, let.id: Get(identity, value.relation_type)}
        else:
            value, identity = self._closed(let.value, domain, failures), let.id
            inner = {other: get for other, get in local.items() if other != let.id}
        if failures is not None:  # whose plans may read it, too
            failures.sharing.lets.append((identity, value))
        body = self.applied(let.body, domain, inner, failures)
        return Let(identity, value, body) if failures is None else body

    # What rows are asked.

    def _mapped(
        self, below: Relation, scalars: Sequence[Scalar], names: Sequence[str], failures: Failures | None = None
    ) -> Relation:
        """Returns `below` with columns appended; the scalars, over `below` and each other, may have subqueries."""
        arity = below.relation_type.arity
        is_failing = failures is not None and any(map(can_fail, scalars))
        if not has_subqueries(scalars) and not is_failing:
            return Map(below, tuple(scalars), tuple(names))
        if any(position >= arity for one in scalars for position in columns_of(one)):
            for scalar, name in zip(scalars, names, strict=True):
                below = self._mapped(below, (scalar,), (name,), failures)
            return below
        whole, plain = self._answered(below, scalars, failures)
        width = whole.relation_type.arity
        mapped = Map(whole, tuple(plain), tuple(names))
        return projected_to(mapped, (*range(arity), *range(width, width + len(plain))))

    def _filtered(self, below: Relation, predicates: Sequence[Scalar], failures: Failures | None = None) -> Relation:
        """Returns the rows of `below` that pass; the predicates may have subqueries."""
        parts = [one for predicate in predicates for one in conjuncts(predicate)]
        simple = [one for one in parts if not has_subqueries((one,))]
        failing = [one for one in simple if failures is not None and can_fail(one)]
        below = filtered(below, [one for one in simple if one not in failing])
        bounds = [without_not(one) for one in failing if is_temporal(without_not(one))]
        failing = [one for one in failing if not is_temporal(without_not(one))]
        if failing:
            below, failing = self._answered(below, [in_turn(failing)], failures)
            below = filtered(below, failing)
        if failures is not None and bounds:
            below = failures.bounded(below, bounds)
        # Whose errors are wanted by the row has its answers looked up by the row.
        memberships = [
            (replace(one, relation=without_unread_subqueries(query_of(one))), negated)
            for one, negated in (filter(None, map(membership_of, parts)) if failures is None else ())
        ]
        rest = [one for one in parts if has_subqueries((one,)) and (failures is not None or membership_of(one) is None)]
        sharing = Sharing(self.local_id)
        may = {one for one, _ in memberships if may_fail(query_of(one), self._lets, of_digits=False)}
        together = asked_together([one for one in memberships if one[0] not in may])
        if together:
            below = self._passing(sharing.shared(below), together)
        asking: Relation | None = None
        for subquery, negated in memberships:
            if (subquery, negated) in together:
                continue
            below = sharing.shared(below)
            if asking is None and equality_correlation(subquery) is None:
                asking = below
            below = self._passed(below, subquery, asking, negated=negated, failing=subquery in may)
        if rest:
            if failures is not None:
                rest = [in_turn(rest)]
            whole, plain = self._answered(below, rest, failures, in_filter=True)
            below = projected_to(Filter(whole, tuple(plain)), range(below.relation_type.arity))
        return sharing.bound(below)

    def _passed(
        self, below: Relation, subquery: Subquery, asking: Relation | None, *, negated: bool, failing: bool
    ) -> Relation:
        """Returns the rows of `below` for which the subquery, `EXISTS` or `ANY`, is true, or if negated is not.

        Args:
            below: The rows.
            subquery: What is asked for them.
            asking: What has all rows of `below`, and perhaps others, for which another subquery is asked: for the same
                arguments the two have one domain.
            negated: Whether the rows are those for which it is not true.
            failing: Whether it may fail. Where it takes arguments, it is computed for those of the rows alone; where it
                takes none, what fails in it is an error if there is any row.
        """
        sharing = Sharing(self.local_id)
        failures: Failures | None = None
        by_row = failing and is_dependent(query_of(subquery))
        if failing and not by_row:
            failures = Failures(sharing, 0)
            subquery = replace(subquery, relation=sharing.shared(failures.caught(self.plain(query_of(subquery)))))
        tied = None if by_row else equality_correlation(subquery)
        if tied is not None:
            arguments = [_with_arguments(outer, subquery.arguments) for outer, _ in tied.pairs]
            outer, arguments = self._answered(below, arguments)
            keys = distinct_of(self.plain(tied.relation), [inner for _, inner in tied.pairs])
            whole = semijoin(outer, arguments, keys, null_safe=False)
        else:
            outer, arguments = self._answered(below, subquery.arguments)
            query = with_correlation_first(query_of(subquery)) if by_row else query_of(subquery)
            same = asking if outer is below and not failing else None
            asked = DomainPlan.of(query, subquery.test, outer, _represented(arguments), sharing, asking=same)
            if by_row:
                failures = Failures(sharing, len(asked.places))
            rows = self.applied(asked.relation, asked.domain, {}, failures if by_row else None)
            if asked.test is not None:
                rows = Filter(rows, self._over((asked.test,), asked.domain))
            keys = distinct_of(rows, references(rows, range(len(asked.places))))
            whole = semijoin(asked.outer, references(asked.outer, asked.places), keys, null_safe=True)
        found = projected_to(whole, range(below.relation_type.arity))
        passed = minus(below, found) if negated else found
        if failures is not None and failures.found:
            failed = failures.raised(distinct_of(below, ()), below.relation_type)
            passed = Union((passed, failed), passed.relation_type.keys)
        return sharing.bound(passed)

    def _passing(self, below: Relation, memberships: Sequence[tuple[Subquery, bool]]) -> Relation:
        """Returns the rows of `below` that have, or with True have not, something in each of the subqueries.

        They are `asked_together`, so one count for each row of the domain tells of all.
        """
        sharing = Sharing(self.local_id)
        found: list[Relation] = []
        counts: list[Aggregate] = []
        conditions: list[Scalar] = []
        for number, (subquery, negated) in enumerate(memberships):
            asked = DomainPlan.of(query_of(subquery), subquery.test, below, _represented(subquery.arguments), sharing)
            by = len(asked.places)
            rows = self.applied(asked.relation, asked.domain, {}, None)
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
        passing = semijoin(asked.outer, references(asked.outer, asked.places), keys, null_safe=True)
        return sharing.bound(projected_to(passing, range(below.relation_type.arity)))

    def _beside(
        self, left: Relation, right: Relation, arguments: Sequence[Scalar], failures: Failures | None = None
    ) -> Relation:
        """Returns each row of `left`, which is plain, beside the rows that `right` has for it."""
        arity, added = left.relation_type.arity, right.relation_type.arity
        if not is_dependent(right):
            if failures is None or not may_fail(right, self._lets):
                return Join((left, self.plain(right)), ())
            left, own = failures.sharing.shared(left), failures.beside(0)
            closed = self._closed(right, ONE_ROW, own)
            failures.add_looked_up(left, (), own)
            return Join((left, closed), ())
        whole, arguments = self._answered(left, arguments, failures)
        if _is_of_one_row(right):
            return self._beside_each(whole, right, arguments, arity, failures)
        sharing = Sharing(self.local_id) if failures is None else failures.sharing
        asked = DomainPlan.of(right, None, whole, _represented(arguments), sharing)
        inner_failures = None if failures is None else failures.beside(len(asked.places))
        rows = self.applied(asked.relation, asked.domain, {}, inner_failures)
        if failures is not None and inner_failures is not None:
            failures.add_looked_up(asked.outer, asked.places, inner_failures)
        width, by = asked.outer.relation_type.arity, len(asked.places)
        joined = looked_up(asked.outer, [(asked.places, rows)])
        beside = projected_to(joined, (*range(arity), *range(width + by, width + by + added)))
        return sharing.bound(beside) if failures is None else beside

    def _beside_each(
        self, left: Relation, right: Relation, arguments: Sequence[Scalar], kept: int, failures: Failures | None
    ) -> Relation:
        """Returns the first `kept` columns of `left` beside what linear operators make of each row: no domain."""
        wide, places = with_scalars(left, arguments, "argument")
        width, added = wide.relation_type.arity, right.relation_type.arity
        placed = with_free_columns(right, lambda outer: replace(outer, number=places[outer.number]))
        rows = self.applied(placed, wide, {}, failures)
        return projected_to(rows, (*range(kept), *range(width, width + added)))

    def _answered(
        self,
        below: Relation,
        scalars: Sequence[Scalar],
        failures: Failures | None = None,
        *,
        in_filter: bool = False,
    ) -> tuple[Relation, list[Scalar]]:
        """Returns `below` with a column for what each subquery of `scalars` says, and the scalars over that.

        If it is wanted by the row what fails, the scalars do not.
        """
        plain = list(scalars)
        by_some = asked_by_some(plain)
        while has_subqueries(plain):
            ready = dict.fromkeys(
                one
                for scalar in plain
                for one in walk(scalar)
                if isinstance(one, Subquery) and not has_subqueries(one.arguments)
            )
            guarded = {
                one
                for one in ready
                if failures is not None or one in by_some or is_guarded(one, self._lets, in_filter=in_filter)
            }
            below, answers = self._with_answers(below, list(ready), guarded, in_filter=in_filter)
            plain = [_replaced(scalar, answers) for scalar in plain]
            by_some = asked_by_some(plain)
        if failures is not None:
            below, total_ones = failures.taken(below, plain)
            plain = list(total_ones)
        return below, plain

    def _with_answers(
        self, below: Relation, subqueries: Sequence[Subquery], guarded: Collection[Subquery], *, in_filter: bool
    ) -> tuple[Relation, dict[Subquery, Scalar]]:
        """Joins what all of the subqueries say to the rows of `below`, at once; their arguments have no subqueries.

        In a filter a subquery may be asked before what else decides of a row, so for more rows. Those `guarded` are
        errors only of the rows that ask for them.
        """
        sharing = Sharing(self.local_id)
        represented = {one: _represented(map(total, one.arguments)) for one in subqueries}
        computed = [each for one in represented.values() for each in one if not isinstance(each, Literal)]
        wide, positions = with_scalars(below, computed, "argument")
        outer = sharing.shared(wide)
        values = dict(zip(computed, positions, strict=True))
        answered: list[tuple[tuple[int, ...], Relation]] = []
        answers: dict[Subquery, Scalar] = {}
        kept = list(range(below.relation_type.arity))
        width = outer.relation_type.arity
        for one in subqueries:
            mine = [
                argument if isinstance(argument, Literal) else reference(outer.relation_type, values[argument])
                for argument in represented[one]
            ]
            query = without_unread_subqueries(query_of(one))
            if is_dependent(query) and may_fail(query, self._lets):
                query = with_correlation_first(query)
            asked = DomainPlan.of(query, one.test, outer, mine, sharing, early=in_filter)
            failures = (
                Failures(sharing, len(asked.places)) if one in guarded and subquery_may_fail(one, self._lets) else None
            )
            said, errors = self._answers_with_errors(one.kind, asked, sharing, failures)
            is_there = one.kind is SubqueryKind.SCALAR and _is_never_null(asked.relation)
            answered.append((asked.places, said))
            own = range(len(asked.places), said.relation_type.arity)
            columns = [
                replace(reference(said.relation_type, place), position=len(kept) + i) for i, place in enumerate(own)
            ]
            texts = [columns.pop() for _ in range(errors)]
            answer = columns[0] if len(columns) == 1 else _one_value(*columns)
            for error in texts:
                answer = raising(answer, error)
            if texts and is_there and answer.nullable:  # it is NULL only where it is wrong
                answer = Call("coalesce", (answer, Call("error", (texts[0],), answer.type, False)), answer.type, False)
            for argument in filter(can_fail, one.arguments):
                answer = If(_is_null(argument), answer, answer)  # which fails where the argument does
            answers[one] = answer
            kept += (width + place for place in own)
            width += said.relation_type.arity
        return sharing.bound(projected_to(looked_up(outer, answered), kept)), answers

    def _answers_with_errors(
        self, kind: SubqueryKind, asked: DomainPlan, sharing: Sharing, failures: Failures | None
    ) -> tuple[Relation, int]:
        """Returns what `_answers` does, then columns for its errors, NULL where there is none; and how many."""
        if failures is None:
            return self._answers(kind, asked, sharing, None), 0
        single = None
        if kind is SubqueryKind.SCALAR and not asked.places:
            single = row_and_value(asked.relation, self.plain, sharing)
        if single is None:
            said, errors = self._answers(kind, asked, sharing, failures), 0
        else:
            row, value, below = single
            if may_fail(below, self._lets):
                row = failures.caught(row)
            width = row.relation_type.arity
            told = Map(row, (total(value), Call("error_of", (value,), TEXT)), ("answer", "error"))
            said, errors = projected_to(told, (width, width + 1)), 1
        if failures.found:
            said, errors = failures.said(said, sharing), errors + 1
        return said, errors

    def _answers(self, kind: SubqueryKind, asked: DomainPlan, sharing: Sharing, failures: Failures | None) -> Relation:
        """Returns, for each row of the domain, its columns and what the subquery says."""
        match kind:
            case SubqueryKind.SCALAR:
                return self._value(asked, sharing, failures)
            case SubqueryKind.EXISTS:
                if at_least_one_row(asked.relation):
                    return _answer(asked.domain, Literal(True, BOOL))
                found = self.applied(asked.relation, asked.domain, {}, failures)
                return self._with_false(asked, distinct_of(found, asked.columns_of(found)), None, sharing)
            case SubqueryKind.ANY:
                return self._any(asked, sharing, failures)
            case _:
                assert_never(kind)

    def _value(self, asked: DomainPlan, sharing: Sharing, failures: Failures | None) -> Relation:
        """Returns the subquery's one value, NULL where there is none, and if there may be several, whether there are.

        That is NULL where there is no row; of several rows the value is NULL.
        """
        one, some = at_most_one_row(asked.relation), at_least_one_row(asked.relation)
        rows = self.applied(asked.relation, asked.domain, {}, failures)
        if one and some:
            return rows
        rows = sharing.shared(rows)
        by, type_ = len(asked.places), rows.relation_type.columns[-1].type
        if one:
            parts, found = [rows], distinct_of(rows, asked.columns_of(rows))
        else:
            counts = Aggregate(AggregateFunction.COUNT, (), INT8)
            counted = sharing.shared(Reduce(rows, tuple(range(by)), (counts,), ("rows",)))
            found = projected_to(counted, range(by))
            are_several = Call("gt_int8", (ColumnRef(by, INT8, False, "rows"), Literal(1, INT8)), BOOL, False)
            many = projected_to(Filter(counted, (are_several,)), range(by))
            extra = semijoin(rows, asked.columns_of(rows), many, null_safe=True)
            parts = [
                _answer(minus(rows, extra), Literal(False, BOOL)),
                _answer(_answer(many, Literal(None, type_)), Literal(True, BOOL)),
            ]
        if not some:
            nothing = _answer(minus(asked.domain, found), Literal(None, type_))
            parts.append(nothing if one else _answer(nothing, Literal(None, BOOL)))
        return Union(tuple(parts), frozenset({frozenset(range(by))}))

    def _any(self, asked: DomainPlan, sharing: Sharing, failures: Failures | None) -> Relation:
        """Returns true where the test is true for some row, else NULL where it is NULL for some, else false."""
        assert asked.test is not None
        by = len(asked.places)
        # What the query itself takes; the test may take more.
        own = tuple(sorted(free_columns(asked.relation)))
        domain = asked.domain
        if len(own) < by:
            domain = sharing.shared(distinct_of(asked.domain, references(asked.domain, own))) if own else ONE_ROW
        places = {number: new for new, number in enumerate(own)}
        relation = with_free_columns(asked.relation, lambda outer: replace(outer, number=places[outer.number]))
        inner_failures = None if failures is None else failures.beside(len(own))
        rows = sharing.shared(self.applied(relation, domain, {}, inner_failures))
        joined = looked_up(asked.domain, [(own, rows)]) if by else rows
        width = asked.relation.relation_type.arity
        start = by + len(own) if by else 0
        whole = projected_to(joined, (*range(by), *range(start, start + width)))
        (test,) = self._over((asked.test,), asked.domain)
        if failures is not None and inner_failures is not None:
            failures.add_looked_up(asked.domain, own, inner_failures)
            whole, (test,) = failures.taken(whole, (test,))
        true = distinct_of(Filter(whole, (test,)), references(whole, range(by)))
        if not asked.test.nullable:
            return self._with_false(asked, true, None, sharing)
        sides = None if failures is not None and can_fail(asked.test) else compared(asked.test)
        if sides is None:
            unknown = [distinct_of(Filter(whole, (_is_null(test),)), references(whole, range(by)))]
        else:
            # Equality is NULL where a side is: each side is looked at alone.
            (outer,) = self._over((sides[0],), asked.domain)
            inner = shifted(sides[1], len(own))
            columns = references(rows, range(len(own)))
            unknown = []
            if inner.nullable:
                keys = distinct_of(Filter(rows, (_is_null(inner),)), columns)
                unknown.append(semijoin(asked.domain, references(asked.domain, own), keys, null_safe=True))
            if outer.nullable:
                nulls = Filter(asked.domain, (_is_null(outer),))
                keys = distinct_of(rows, columns)
                unknown.append(semijoin(nulls, references(asked.domain, own), keys, null_safe=True))
        return self._with_false(asked, true, unknown, sharing)

    def _with_false(
        self, asked: DomainPlan, true: Relation, unknown: Sequence[Relation] | None, sharing: Sharing
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


def _is_never_null(relation: Relation) -> bool:
    """Returns whether the value of a scalar subquery cannot be NULL."""
    return is_one_row(relation) and not relation.relation_type.columns[-1].nullable


def _is_of_one_row(relation: Relation) -> bool:
    """Returns whether `relation` is linear operators over the one row without columns."""
    match relation:
        case Map() | Filter() | Projection() | FlatMap():
            return not has_subqueries(scalars_of(relation)) and _is_of_one_row(relation.input)
        case _:
            return relation is ONE_ROW


def _one_value(value: Scalar, several: Scalar) -> Scalar:
    """Returns the value of a scalar subquery, an error where it has several rows, wherever it is evaluated."""
    nothing = Literal(None, value.type)
    error = Call("error", (Literal(_SEVERAL, TEXT),), value.type, False)
    # Where there is no row the value is NULL, too; said here, a filter that refuses it is known to need none of those.
    return If(_is_null(several), nothing, If(several, error, value))


def _replaced(scalar: Scalar, answers: Mapping[Subquery, Scalar]) -> Scalar:
    """Returns `scalar` with what its subqueries say."""
    return substitute(scalar, lambda one: answers.get(one) if isinstance(one, Subquery) else None)


def _represented(arguments: Iterable[Scalar]) -> list[Scalar]:
    """Returns arguments as a domain has them: what is equal may not be the same to the functions in a plan."""
    return [one if isinstance(one, Literal) else by_representation(one) for one in arguments]


def _with_arguments(scalar: Scalar, arguments: Sequence[Scalar]) -> Scalar:
    return with_outer_columns(scalar, lambda outer: arguments[outer.number])


def _answer(relation: Relation, answer: Scalar) -> Relation:
    return Map(relation, (answer,), ("answer",))


def _is_null(scalar: Scalar) -> Scalar:
    return Call("is_null", (scalar,), BOOL, False)


def _apart_by_domain(relation: OneInput, by: int) -> OneInput:
    """Returns an operator that passes on the first `by` columns of its input, and takes rows apart by them."""
    domain = tuple(range(by))
    match relation:
        case Projection():
            relation = replace(relation, positions=domain + relation.positions)
        case Reduce():
            relation = replace(relation, key=domain + relation.key)
        case TopK():
            relation = replace(relation, group=domain + relation.group)
        case Window():
            relation = replace(relation, partition=domain + relation.partition)
    places = let_through(relation)
    if any(places.get(one) != one for one in domain):
        raise InternalError(f"a {type(relation).__name__} takes rows of several arguments together")
    return relation
