"""EXPLAIN: how a query is computed, or a view maintained; and EXPLAIN ANALYZE: what a query cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mz_dagster.adapter.definition import define
from mz_dagster.adapter.engine import Engine
from mz_dagster.adapter.peeks import ReadReport
from mz_dagster.adapter.query_indexes import QueryIndexes
from mz_dagster.adapter.result import Result
from mz_dagster.adapter.sequence.context import Context
from mz_dagster.adapter.sequence.select import Reads, reads_of
from mz_dagster.compute.placement.explained import Size, placement
from mz_dagster.errors import ProgrammingError
from mz_dagster.formalism import GlobalId
from mz_dagster.plan import explain_logical, explain_physical, lower_to_maintained_plan, optimize
from mz_dagster.plan.lowering import estimated_state
from mz_dagster.plan.physical import MaintainedPlan
from mz_dagster.plan.relation import Relation
from mz_dagster.scalars.types import TEXT, Column
from mz_dagster.sql import Explain, Name, Select, SqlText, Statement, bind_query

_COLUMNS = (Column("plan", TEXT, False),)


def explain(context: Context, statement: Explain, parameters: Sequence[object]) -> Result:
    """Returns the plan of what is explained, and what its operators cost if it is executed."""
    explaining = _Explaining(context.engine, reads_of(context))
    return (
        explaining.analyzed(statement, parameters)
        if statement.analyzes
        else explaining.explained(statement, parameters)
    )


@dataclass(frozen=True, slots=True)
class _Explaining:
    """Explains.

    Attributes:
        engine: The project.
        reads: Executes queries.
    """

    engine: Engine
    reads: Reads

    def explained(self, statement: Explain, parameters: Sequence[object]) -> Result:
        """Returns the plan of what is explained."""
        relation, plan = self._explained(statement, parameters)
        parts = []
        if statement.stage in ("plan", "logical"):
            parts.append(explain_logical(relation))
        if statement.stage in ("plan", "physical"):
            expected = self._expected(plan)
            shown = ", ".join(f"{name} about {rows}" for name, rows in expected.items())
            parts.append(f"{explain_physical(plan)}\nrows expected: {shown}")
            kept = self._kept(statement.target, plan)
            is_query = isinstance(statement.target, SqlText)
            parts.append(placement(plan, lambda id: self._size(kept.get(id, id)), expected, is_query=is_query))
        rows = tuple((line,) for line in "\n\n".join(parts).splitlines())
        return Result("EXPLAIN", _COLUMNS, rows, len(rows))

    def _expected(self, plan: MaintainedPlan) -> dict[str, int]:
        """Returns how many rows a plan's states and its output will hold, by what its inputs hold now."""
        counts = self.engine.catalog.live_batch_counts()
        return estimated_state(plan, lambda id: counts[id][1].rows if id in counts else 0)

    def _kept(self, target: Statement | Name | SqlText, plan: MaintainedPlan) -> dict[GlobalId, GlobalId]:
        """Returns the collections of a plan's arrangements, if what is explained is maintained already."""
        if not isinstance(target, Name):
            return {}
        owner = self.reads.names.readable(target).id
        own = [one for one in self.engine.catalog.objects("arrangement") if one.owner == owner]
        own.sort(key=lambda one: int(one.options["position"]))
        return {kept.id: one.id for kept, one in zip(plan.arrangements, own, strict=False)}

    def _size(self, id: GlobalId) -> Size | None:
        """Returns how much there is of a collection, None if there is none."""
        batches = self.engine.catalog.live_batches([id])[id]
        if not batches:
            return None
        stats = [one.stats for one in batches]
        return Size(sum(one.rows for one in stats), sum(one.bytes for one in stats), stats[-1].rows)

    def _explained(self, statement: Explain, parameters: Sequence[object]) -> tuple[Relation, MaintainedPlan]:
        """Returns the optimized query that is to be explained, and how it is, or would be, maintained."""
        definitions, target = self.engine.definitions, statement.target
        if isinstance(target, SqlText):
            peeks = self.reads.peeks
            indexes = QueryIndexes(self.engine, peeks.asked_time(None), peeks.written)
            names = indexes.named(self.reads.names)
            bound = bind_query(target, names, params=parameters, circumstances=self.reads.circumstances())
            relation = indexes.by_key(optimize(bound.relation))
            shown = bound.relation_type.names
            return relation, lower_to_maintained_plan(relation, shown + relation.relation_type.names[len(shown) :])
        if isinstance(target, Name):
            definition = definitions.definition(self.reads.names.readable(target).id)
        else:
            without = define(target, self.reads.names, default_timeline=self.engine.project.timeline)
            definition = QueryIndexes(self.engine).over(without, target, self.reads.names)
        read = definition.relation
        if read is None and definition.on is not None:
            read = definition.on.contents()
        if read is None:
            raise ProgrammingError(
                f'"{target}" is no view',
                hint="EXPLAIN a view, a materialized view, an index, a check or a query.",
                position=target.offset + 1,
            )
        relation = optimize(read)
        return relation, definition.plan or lower_to_maintained_plan(relation, definition.relation_type.names)

    def analyzed(self, statement: Explain, parameters: Sequence[object]) -> Result:
        """Returns a query's plan and what it cost, by executing it."""
        assert isinstance(statement.target, SqlText), "only queries are analyzed"
        clock, report = self.engine.clock, ReadReport()
        begun = clock.monotonic_ms()
        query = Select(statement.text, statement.offset, statement.parameters, statement.target, None)
        reads = replace(self.reads, peeks=replace(self.reads.peeks, report=report))
        result = reads.select(query, parameters)
        ended = clock.monotonic_ms()
        assert report.relation is not None, "what is told of is planned anew"
        lines = [*explain_logical(report.relation).splitlines(), "", f"computed by: {report.computed_by}"]
        lines += [f"  {one}" for one in report.placements]
        if report.costs:
            width = max(len(one.operator) for one in report.costs)
            lines.append(f"{'operator':{width}}  {'rows':>10}  {'ms':>10}")
            lines += [f"{one.operator:{width}}  {one.updates:>10}  {one.ms:>10.3f}" for one in report.costs]
        names = self.engine.names()
        read = ", ".join(f"{names.get(id, id)} {count}" for id, count in sorted(report.rows.items()))
        lines.append(f"rows stored of what was read: {read or 'none'}")
        lines.append(f"rows returned: {len(result.rows)}")
        lines.append(f"planning time: {report.planned_ms - begun:.3f} ms")
        lines.append(f"execution time: {ended - report.planned_ms:.3f} ms")
        return Result("EXPLAIN", _COLUMNS, tuple((one,) for one in lines), len(lines))
