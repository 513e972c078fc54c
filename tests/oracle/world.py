"""One random world: tables, views over them and over each other, a history, and the comparison at every time.

The history writes the same statements here and there, and in between reads (which drives steps of some collections),
steps all, merges and forgets, changes retentions, closes and reopens the engine, and creates further views. At its end
every materialized view is read at every time at which it is readable, in process.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

from mz_dagster.adapter import Connection, Engine, Isolation, Project
from mz_dagster.adapter.result import user_rows
from mz_dagster.budget import Budget, budget_of
from mz_dagster.catalog import CollectionRow
from mz_dagster.clock import SystemClock
from mz_dagster.compute.snapshot.peek import CollectionHasErrors
from mz_dagster.errors import DataError, NotSupportedError, ProgrammingError
from mz_dagster.formalism import GlobalId
from mz_dagster.plan.physical import MaintainedPlan, Physical, ReadCollection, Staged, StageFunction, physical_inputs
from mz_dagster.scalars.values import from_stored
from mz_dagster.sql.schemas import key_of
from mz_dagster.storage.plain_cells import moments_as_numbers
from mz_dagster.storage.read import overlapping
from mz_dagster.storage.spark import SparkConfig
from tests.names import BYTES, Names, quoted, unquoted
from tests.oracle.dialects import ours
from tests.oracle.expressions import NUMERICS, TYPES, Column, Scalars, literal
from tests.oracle.queries import Queries
from tests.oracle.referee import Answer, Referee, spelled
from tests.oracle.scope import Query, Relation
from tests.postgres_server import Postgres

TIMELINE = "default"
#: What SQL cannot reach yet.
UNREACHED: frozenset[str] = frozenset()
#: SQLSTATEs that an expression can raise.
DATA_CODES = frozenset({"22003", "22007", "22008", "22011", "22012", "22P02", "22023", "22025"})


class ShiftedClock(SystemClock):
    """Is the system's clock, ahead by what a test says: so retentions of seconds pass in no time."""

    def __init__(self) -> None:
        self.ahead = 0

    def now_ms(self) -> int:
        """Returns milliseconds since the epoch, and what it is ahead."""
        return super().now_ms() + self.ahead


class Disagreement(AssertionError):
    """Is a counter-example."""


@dataclass
class Tally:
    """Counts what some worlds did.

    Attributes:
        accepted: Queries that were accepted.
        refused: Queries that were refused, by the reason.
        compared: Answers that were compared, one for each view and time.
        errors: How many of them were errors.
        loose: How many may legally differ, since an optimizer may move an error.
        moved: How many of these did.
        indexes: How often a view's plan reads the index of another.
        shared: How often a worker computed a collection, in steps of all.
        operators: How often each operator stood in an accepted view's plan.
        shapes: How many views there were of each shape of query.
    """

    accepted: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    compared: int = 0
    errors: int = 0
    loose: int = 0
    moved: int = 0
    indexes: int = 0
    shared: int = 0
    operators: Counter[str] = field(default_factory=Counter)
    shapes: Counter[str] = field(default_factory=Counter)

    @property
    def queries(self) -> int:
        """How many queries were tried."""
        return self.accepted + self.refused.total()

    @property
    def acceptance(self) -> float:
        """The part of the queries that was accepted."""
        return self.accepted / max(1, self.queries)

    def add(self, other: Tally) -> None:
        """Adds another's counts."""
        self.accepted += other.accepted
        self.refused.update(other.refused)
        self.compared += other.compared
        self.errors += other.errors
        self.loose += other.loose
        self.moved += other.moved
        self.indexes += other.indexes
        self.shared += other.shared
        self.operators.update(other.operators)
        self.shapes.update(other.shapes)

    def check(self, *, covers: bool = True) -> None:
        """Fails if the worlds say too little; a few worlds need not cover every kind of operator."""
        assert self.acceptance >= 0.8, f"{self.acceptance:.0%} of the queries were accepted: {self.refused}"
        if not covers:
            return
        kinds = {one.__name__ for one in (*get_args(Physical), *get_args(StageFunction))}
        never = kinds - UNREACHED - self.operators.keys()
        assert not never, f"operators that no view exercised: {sorted(never)}"
        assert self.operators["arrangement"], "no view needed an arrangement"
        assert self.errors, "no answer was an error"
        assert self.indexes, "no view read an index"
        assert not self.operators.keys() & UNREACHED, "SQL reaches an operator that is said to be unreached"

    def __str__(self) -> str:
        return (
            f"{self.queries} queries, {self.acceptance:.0%} accepted; {self.compared} answers compared, {self.errors} "
            f"errors; {self.loose} with movable errors, {self.moved} moved; "
            f"{self.indexes} indexes read; {self.shared} computed by workers; "
            f"{dict(self.shapes)}; {dict(self.operators)}; "
            f"refused: {dict(self.refused)}"
        )


@dataclass(frozen=True)
class View:
    """Is a view of the world.

    Attributes:
        query: Its query.
        materialized: Whether it is maintained.
    """

    name: str
    query: Query
    materialized: bool


#: Where worlds compute: by the thresholds that users have, by Spark alone, and in this process however much it is, few
#: rows at a time, of files that are decoded to the disk, as memory keeps hardly any.
BUDGETS = (
    Budget(),
    Budget.spark_alone(),
    replace(
        Budget.here_alone(),
        portion_rows=3,
        ordered_rows=0,
        decoded_rows=0,
        inlined_rows=2,
        hot_bytes=2_000,
        sorted_rows=0,
        pairs_per_row=0,
        loose_rows=0,
        whole_rows=10**6,
    ),
)


class World:
    """Is one world.

    Args:
        seed: Decides everything.
        folder: The project's.
        spark: Which Spark.
        server: The referee's server.
        views: How many queries become views.
        writes: How many statements the history has.
        workers: How many processes compute beside the one that steps, however little there is to compute.
        say: Receives lines that tell the story.
    """

    def __init__(
        self,
        seed: int,
        folder: Path,
        spark: SparkConfig,
        server: Postgres,
        *,
        views: int = 12,
        writes: int = 14,
        workers: int = 0,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.seed = seed
        self.random = random.Random(seed)
        self.tally = Tally()
        #: Of what people name; every fourth world has plain names, whose stories are easier to read.
        self._names = None if seed % 4 == 0 else Names(random.Random(seed), BYTES - 4)
        self._folder = folder if self._names is None else self._names.project(folder)
        self._spark = spark
        self._clock = ShiftedClock()
        self._referee = Referee(server, f"world_{seed}")
        self._view_count = views
        self._write_count = writes
        self._workers = workers
        self._say = say
        self._tables: list[Relation] = []
        self._views: dict[str, View] = {}
        #: Of what indexes there are, so that the rest of a world is the same with and without.
        self._indexing = random.Random(f"indexes {seed}")
        self._indexed: list[str] = []
        #: Of what is where; every other world has schemas.
        self._placing = random.Random(f"schemas {seed}")
        self._declaring = random.Random(f"declared {seed}")
        self._schemas: list[str] = []
        #: Of what is not in `public`, by its name as SQL spells it: its schema so, and what the catalog calls it.
        self._places: dict[str, tuple[str, str]] = {}
        self._column_names = [self._named(f"n{i}") for i in range(8)]
        self._queries = Queries(self.random)
        #: The time of each write and the state it made, ascending; state 0 holds nothing.
        self._history: list[tuple[int, int]] = []
        self._reads: list[tuple[str, Query, str, int, Answer]] = []
        self._opened = ExitStack()

    def run(self) -> Tally:
        """Lives through the world, under the budget that its seed chooses.

        Raises:
            Disagreement: An answer is not the referee's.
        """
        with self._opened:
            self._opened.callback(self._referee.close)
            budget = replace(BUDGETS[self.seed % len(BUDGETS)], shared_objects=1, shared_hydrations=1)
            if self.seed % 2:  # rows are looked up by their keys, however few there are
                budget = replace(budget, whole_rows=0)
            self._opened.enter_context(budget_of(budget))
            self._open()
            try:
                self._live()
            finally:
                self._connection.close()
        return self.tally

    def _live(self) -> None:
        for n in range(0 if self.seed % 2 else 2):
            self._create_schema(n)
        for n in range(self.random.randrange(2, 4)):
            self._create_table(n)
        late = self.random.randrange(self._view_count // 2 + 1)
        for _ in range(self._view_count - late):
            self._create_view()
        at = self.random.randrange(1, self._write_count)
        for n in range(self._write_count):
            self._write(first=n < len(self._tables))
            if n == at:
                for _ in range(late):
                    self._create_view()
            self._meanwhile()
        for _ in range(self._view_count // 4):
            query = self._queries.query()
            if not query.temporal:  # nobody would know at which time it was answered
                self._select(query)
        self._step()
        self._check_planned_alike()
        self._compare()
        self._compare_directly()

    # ---- making it

    def _open(self) -> None:
        project = replace(Project.load(self._folder), workers=self._workers)
        engine = Engine(project, clock=self._clock, spark=self._spark)
        assert engine.workers is None or engine.workers.start(deadline_s=60)
        self._connection = Connection(engine, Isolation.STRICT_SERIALIZABLE)

    def _execute(self, text: str, isolation: Isolation | None = None) -> Any:
        text = ours(text)
        self._say(f"{text};")
        connection = self._connection if isolation is None else Connection(self._connection.engine, isolation)
        return connection.execute(text)

    def _named(self, plain: str) -> str:
        """Returns a name as SQL spells it."""
        return plain if self._names is None else quoted(self._names.identifier())

    def _create_schema(self, n: int) -> None:
        # The referee's server has one of that name for all worlds.
        schema = f"s{self.seed}_{n}" if self._placing.random() < 0.5 else quoted(f'S "{self.seed}".{n}')
        self._execute(f"CREATE SCHEMA {schema}")
        self._referee.create_schema(schema)
        self._schemas.append(schema)

    def _placed(self, name: str) -> str:
        """Returns a name with the schema that what bears it is to be in, if it is another than `public`."""
        if not self._schemas or self._placing.random() < 0.4:
            return name
        schema = self._placing.choice(self._schemas)
        self._places[f"{schema}.{name}"] = schema, key_of(unquoted(schema), unquoted(name))
        return f"{schema}.{name}"

    def _collection(self, name: str) -> GlobalId:
        _, key = self._places.get(name) or ("", unquoted(name))
        return self._connection.engine.collection_of(key)

    def _create_table(self, n: int) -> None:
        # The same name has the same type in all tables, so that USING finds some.
        chosen_types = random.Random(self.seed).sample([*TYPES, "integer", "text"], 5)
        types = [chosen_types[i % 5] for i in range(8)]
        chosen = self.random.sample(range(8), self.random.randrange(3, 7))
        columns = []
        for i in chosen:
            nullable = self.random.random() < 0.75
            bound = 1e40 if self.random.random() < 0.3 else 100
            columns.append(Column(self._column_names[i], types[i], bound, nullable))
        table = Relation(self._placed(self._named(f"r{n}")), tuple(columns))
        definition = ", ".join(f"{c.name} {self._declared(c)}{'' if c.nullable else ' NOT NULL'}" for c in columns)
        text = f"CREATE TABLE {table.name} ({definition})"
        self._execute(text)
        self._referee.create_table(table, text)
        self._tables.append(table)
        self._queries.relations.append(table)

    def _declared(self, column: Column) -> str:
        """Returns the type that a column is declared of: a numeric's may have no more digits than its values."""
        if column.type not in NUMERICS or self._declaring.random() < 0.5:
            return column.type
        scale = int(column.type[:-1].split(",")[1])
        return f"numeric({scale + 2},{scale})"

    def _create_view(self) -> None:
        query = self._queries.query()
        name = self._placed(self._named(f"v{len(self._views) + self.tally.refused.total()}"))
        materialized = self.random.random() < 0.8
        self._referee.run(f"CREATE VIEW {name} AS {query.text}")
        kind = "MATERIALIZED VIEW" if materialized else "VIEW"
        try:
            self._execute(f"CREATE {kind} {name} AS {query.text}")
        except (NotSupportedError, ProgrammingError) as refusal:
            self._refused(refusal)
            self._referee.run(f"DROP VIEW {name}")
            return
        self.tally.accepted += 1
        self._views[name] = View(name, query, materialized)
        self.tally.shapes[query.shape] += 1
        self._queries.relations.append(Relation(name, query.columns, query.safe, query.temporal))
        engine = self._connection.engine
        if materialized:
            plan = engine.definitions.definition(self._collection(name)).plan
            assert plan is not None
            self.tally.indexes += len(engine.definitions.definition(self._collection(name)).indexes)
            self.tally.operators.update(_operators(plan))
        elif self._indexing.random() < 0.6:
            self._create_index(name)

    def _create_index(self, view: str) -> None:
        """Has a plain view kept by an index, which what is defined over it from now on reads."""
        index = f"kept_{len(self._views)}"
        try:
            self._execute(f"CREATE INDEX {index} ON {view}")
        except (NotSupportedError, ProgrammingError) as refusal:  # what is over constants, or has a reader's time
            self._say(f"-- refused: {refusal}")
        else:
            self._indexed.append(f"{self._places[view][0]}.{index}" if view in self._places else index)

    def _refused(self, refusal: Exception) -> None:
        reason = str(refusal).splitlines()[0]
        self._say(f"-- refused: {reason}")
        self.tally.refused[reason] += 1

    # ---- its history

    def _write(self, *, first: bool) -> None:
        self._clock.ahead += self.random.choice((1, 200, 700))
        table = self.random.choice(self._tables) if not first else self._tables[len(self._history)]
        text = self._statement(table, first=first)
        theirs = self._referee.try_run(text)
        try:
            self._execute(text)
        except DataError as error:
            code = error.sqlstate
            if theirs is None:
                raise Disagreement(f"PostgreSQL executes it, we raise {code}: {text}") from error
        except (NotSupportedError, ProgrammingError) as refusal:
            self._refused(refusal)
            self._referee.restore(self._state())
        else:
            if theirs is not None:
                raise Disagreement(f"PostgreSQL raises {theirs}, we execute it: {text}")
        state = self._referee.keep_state()
        self._history.append((self._connection.engine.catalog.read_ts(TIMELINE), state))

    def _statement(self, table: Relation, *, first: bool) -> str:
        source = self.random
        names = ", ".join(one.name for one in table.columns)
        roll = source.random()
        if first or roll < 0.6:
            rows = [self._row(table) for _ in range(source.choice((1, 2, 4, 8)))]
            rows += [source.choice(rows) for _ in range(source.randrange(2))]
            return f"INSERT INTO {table.name} ({names}) VALUES {', '.join(rows)}"
        where = Scalars(source, table.columns).predicate(1)
        condition = where.with_columns(lambda n: table.columns[n].name)
        if roll < 0.8:
            return f"DELETE FROM {table.name} WHERE {condition}"
        one = source.choice(table.columns)
        value = Scalars(source, table.columns).expression(one.type, 1, safe=True)
        if not one.nullable or value.bound > one.bound:
            return f"UPDATE {table.name} SET {one.name} = {literal(source, one.type)} WHERE {condition}"
        shown = value.with_columns(lambda n: table.columns[n].name)
        return f"UPDATE {table.name} SET {one.name} = {shown} WHERE {condition}"

    def _row(self, table: Relation) -> str:
        cells = []
        for one in table.columns:
            null = 0.2 if one.nullable else 0.0
            now = self._clock.now_ms()
            cells.append(literal(self.random, one.type, wild=one.bound > 100, null=null, now=now))
        return f"({', '.join(cells)})"

    def _meanwhile(self) -> None:
        source = self.random
        if source.random() < 0.2:
            self._read(source.choice((None, Isolation.SERIALIZABLE)))
        if source.random() < 0.12:
            self._step()
        if source.random() < 0.12:
            named = source.choice([("TABLE", one.name) for one in self._tables] + self._maintained())
            change = source.choice(("SET (RETAIN HISTORY FOR '1 s')", "SET (RETAIN HISTORY FOR '3 s')",
                                    "RESET (RETAIN HISTORY)"))  # fmt: skip
            self._execute(f"ALTER {named[0]} {named[1]} {change}")
        if self._indexed and self._indexing.random() < 0.1:
            self._execute(f"DROP INDEX {self._indexed.pop(self._indexing.randrange(len(self._indexed)))}")
        if source.random() < 0.25:
            self._say("-- compact")
            for line in self._connection.engine.compact(thorough=source.random() < 0.3):
                self._say(f"--   {line}")
        if source.random() < 0.12:
            self._say("-- restart")
            self._connection.close()
            self._open()
            self._check_planned_alike()

    def _check_planned_alike(self) -> None:
        engine = self._connection.engine
        for id in engine.replan():
            raise Disagreement(f"seed {self.seed}: {engine.names()[id]} is not planned as it was when it was created")

    def _maintained(self) -> list[tuple[str, str]]:
        return [("MATERIALIZED VIEW", one.name) for one in self._views.values() if one.materialized]

    def _step(self) -> None:
        engine = self._connection.engine
        poll = engine.poll(TIMELINE)
        self._say(f"-- {poll.reason}")
        if poll.tick is not None:
            report = engine.step(TIMELINE, poll.tick)
            self.tally.shared += sum(1 for one in report.collections if one.worker)
            for one in report.failures:
                raise Disagreement(f"the step failed {one.name}: {one.error}\n{self._definition(one.name)}")

    def _read(self, isolation: Isolation | None) -> None:
        """Reads a view at the latest time; the answer is compared later."""
        names = [one.name for one in self._views.values() if one.materialized and not one.query.temporal]
        if names and isolation is None:
            name = self.random.choice(names)
            answer = self._ask(f"SELECT * FROM {name}", self._views[name].query)
            self._reads.append((name, self._views[name].query, f"SELECT * FROM {name}", self._state(), answer))
        elif names:
            # It takes the latest time that is complete, whichever: that it can be read is all that is asked.
            name = self.random.choice(names)
            self._ask(f"SELECT * FROM {name}", self._views[name].query, isolation)

    def _select(self, query: Query) -> None:
        try:
            answer = self._ask(query.text, query)
        except (NotSupportedError, ProgrammingError) as refusal:
            self._refused(refusal)
            return
        self.tally.accepted += 1
        self._reads.append(("SELECT", query, query.text, self._state(), answer))

    def _ask(self, text: str, query: Query, isolation: Isolation | None = None) -> Answer:
        try:
            rows = self._execute(text, isolation).fetchall()
        except CollectionHasErrors as error:
            return Answer(None, frozenset({error.sqlstate}))
        return Answer(spelled(rows, [one.type for one in query.columns]))

    def _state(self) -> int:
        return self._history[-1][1] if self._history else 0

    # ---- comparing

    def _compare(self) -> None:
        """Compares every read, and every materialized view at every time at which it is readable."""
        engine = self._connection.engine
        rows = {name: engine.catalog.collection(self._collection(name)) for _, name in self._maintained()}
        for state, times in self._intervals():
            self._referee.restore(state)
            for name, query, text, read_at, answer in self._reads:
                if read_at == state:
                    self._agree(name, query, text, self._referee.answer(query, text), answer, f"state {state}")
            for name, row in rows.items():
                query = self._views[name].query
                expected: Answer | None = None
                for time in times:
                    if not row.since.only <= time < row.upper.only:
                        continue
                    text = f"SELECT * FROM {name}"
                    if expected is None or query.temporal:
                        self._referee.set_now(time)
                        expected = self._referee.answer(query, text)
                    answer = self._content(row, query, time)
                    self._agree(name, query, text, expected, answer, f"time {time}, state {state}")
            for table in self._tables:
                self._compare_table(table, times[0])

    def _compare_directly(self) -> None:
        """Compares some maintained views with their queries, asked now: the same rows, however ties are broken."""
        maintained = [one for one in self._views.values() if one.materialized and not one.query.temporal]
        for view in self.random.sample(maintained, min(3, len(maintained))):
            held = self._ask(f"SELECT * FROM {view.name}", view.query)
            asked = self._ask(view.query.text, view.query)
            self._agree(view.name, view.query, view.query.text, held, asked, "directly")

    def _intervals(self) -> Iterator[tuple[int, list[int]]]:
        """Yields each state with times at which it is the present: its own, the last before the next, one between."""
        for n, (time, state) in enumerate(self._history):
            following = self._history[n + 1][0] if n + 1 < len(self._history) else time + 1
            if following > time:
                yield state, sorted({time, following - 1, self.random.randrange(time, following)})

    def _content(self, row: CollectionRow, query: Query, time: int) -> Answer:
        """Reads a view by SQL; of a view with errors, its rows that are none, too."""
        types = [one.type for one in query.columns]
        name = next(view.name for view in self._views.values() if view.query is query)
        try:
            return Answer(spelled(self._connection.execute(f"SELECT * FROM {name} AS OF {time}").fetchall(), types))
        except CollectionHasErrors as error:
            code = error.sqlstate
        shards = self._connection.engine.shards
        batches = self._connection.engine.catalog.live_batches([row.id])[row.id]
        frame = shards.read(row, overlapping(batches, None, time + 1), upper=time + 1)
        total = shards.consolidate(row, frame, time)
        cells = [
            [from_stored(c, one.type) for c in moments_as_numbers(total.column(one.name)).to_pylist()]
            for one in row.columns
        ]
        diffs, errors = total.column("mz_diff").to_pylist(), total.column("mz_error").to_pylist()
        good = [
            tuple(column[n] for column in cells)
            for n, (diff, error) in enumerate(zip(diffs, errors, strict=True))
            for _ in range(diff)
            if error is None
        ]
        return Answer(spelled(user_rows(good, row.columns), types), frozenset({code}))

    def _compare_table(self, table: Relation, time: int) -> None:
        engine = self._connection.engine
        row = engine.catalog.collection(self._collection(table.name))
        if row.since.only <= time < row.upper.only:
            types = [one.type for one in table.columns]
            text = f"SELECT * FROM {table.name}"
            ours = spelled(self._connection.execute(f"{text} AS OF {time}").fetchall(), types)
            columns = tuple(Column(one.name, one.type) for one in table.columns)
            query = Query(text, columns, True, True)
            self._agree(table.name, query, text, self._referee.answer(query, text), Answer(ours), f"time {time}")

    def _agree(self, name: str, query: Query, text: str, theirs: Answer, ours: Answer, when: str) -> None:
        self.tally.compared += 1
        self.tally.errors += bool(ours.codes)
        if not query.safe and not query.strict:
            self.tally.loose += 1
            if bool(theirs.codes) != bool(ours.codes):
                self.tally.moved += 1
                if ours.codes <= DATA_CODES:
                    return
            elif ours.codes and ours.codes <= DATA_CODES:
                return
        if ours.codes == {"0A000"} and any("'NaN'" in row for row in theirs.rows or ()):
            return  # a text that no numeric here can be
        same_rows = ours.rows is None or theirs.rows is None or ours.rows == theirs.rows
        if same_rows and ours.codes <= theirs.codes and bool(ours.codes) == bool(theirs.codes):
            return
        raise Disagreement(
            f"seed {self.seed}, {when}: {text}\n{self._definition(name)}\n{query.text}\n"
            f"PostgreSQL: {sorted(theirs.codes)} only there: {_few(theirs, ours)}\n"
            f"here: {sorted(ours.codes)} only here: {_few(ours, theirs)}"
        )

    def _definition(self, name: str) -> str:
        """Returns a view's definition and those of what it reads."""
        view = self._views.get(name)
        return "\n".join(f"-- {one.name} = {one.query.text}" for one in self._views.values() if one is view)


def _few(one: Answer, other: Answer) -> str:
    more = (one.rows or Counter()) - (other.rows or Counter())
    return "; ".join(f"{n} x {row}" for row, n in more.most_common(5))


def _operators(plan: MaintainedPlan) -> Iterator[str]:
    for one in (*(a.plan for a in plan.arrangements), plan.output):
        yield from _nodes(one)
    yield from ("arrangement" for _ in plan.arrangements)


def _nodes(node: Physical) -> Iterator[str]:
    yield type(node).__name__
    if isinstance(node, Staged):
        yield type(node.function).__name__
    if not isinstance(node, ReadCollection):
        for one in physical_inputs(node):
            yield from _nodes(one)
