"""The storage API keeps its promises on every catalog: what it stores reads as the formalism says (items 62 to 82)."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

from mz_dagster.catalog import (
    BatchState,
    CapabilityExpired,
    Catalog,
    CollectionUpperMismatch,
    FrontierNotHeld,
    NewObject,
    ReadCapability,
    Seal,
    UnknownCapability,
    UnknownObject,
    WriteCapability,
    WrongDefinition,
    WrongRight,
    WrongSeal,
)
from mz_dagster.clock import SYSTEM_CLOCK, ManualClock
from mz_dagster.errors import Error
from mz_dagster.formalism import (
    EPOCH_MS,
    Antichain,
    GlobalId,
    IdAlreadyBound,
    Ptvc,
    Timeline,
    Update,
    UpdateBeyondUpper,
    UpdateNotBeyondLower,
    UpperWentBack,
    compact_updates,
    consolidate,
)
from mz_dagster.scalars.types import INT4, Column
from mz_dagster.storage import (
    AppendLost,
    CollectionDescription,
    LocalShards,
    Storage,
    SubscribeDeadline,
    Subscription,
    Updates,
    Upper,
    compact,
    compare_and_append,
    read_updates,
    sweep,
    update_table,
)

COLUMNS = (Column("n", INT4), Column("v", INT4))
TIMELINE: Timeline[int] = Timeline("t", EPOCH_MS)
NEVER = Antichain.empty(EPOCH_MS)
LEASE_MS = 1000


def at(time: int) -> Antichain[int]:
    return Antichain.of(EPOCH_MS, time)


#: On PostgreSQL only in the deep run.
ON_SQLITE = pytest.mark.parametrize(
    "url", ["sqlite", pytest.param("postgresql", marks=pytest.mark.deep)], indirect=True
)


@pytest.fixture
def shards(tmp_path: Path) -> LocalShards:
    return LocalShards(tmp_path)


@pytest.fixture
def storage(catalog: Catalog, shards: LocalShards) -> Storage:
    return Storage(catalog, shards, holder="test", lease_ms=LEASE_MS)


def created(storage: Storage, **described: Any) -> tuple[ReadCapability, WriteCapability]:
    return storage.create(storage.new_id(), CollectionDescription("t", COLUMNS, **described))


def at_of(timeline: Timeline[int], time: int) -> Antichain[int]:
    return Antichain.of(timeline, time)


def rows(message: Updates) -> list[Update[tuple[Any, ...], int]]:
    found = (tuple(row.values()) for row in message.frame.to_pylist())
    return [Update(row[:-3], row[-3], row[-2]) for row in found]


def updates_in(subscription: Subscription) -> frozenset[Update[tuple[Any, ...], int]]:
    """Returns all updates until the subscription ends, having checked that progress is told as promised."""
    found: list[Update[tuple[Any, ...], int]] = []
    told = at(0)
    for message in subscription:
        if isinstance(message, Upper):
            assert told < message.frontier
            told = message.frontier
        else:
            assert all(told.less_equal(one.time) for one in rows(message)), "an update of a time that was complete"
            found += rows(message)
    return consolidate(found)


def live_batches(catalog: Catalog, id: GlobalId) -> int:
    return len(catalog.batches(id, BatchState.LIVE))


# ---- the formalism


def test_what_is_stored_reads_as_the_formalism_says(
    catalog: Catalog, shards: LocalShards, storage: Storage, clock: ManualClock
) -> None:
    check_random_commands(catalog, shards, storage, clock, random.Random(5), 20)


@pytest.mark.deep
@pytest.mark.parametrize("seed", range(6))
def test_what_is_stored_reads_as_the_formalism_says_whatever_is_done(
    catalog: Catalog, shards: LocalShards, storage: Storage, clock: ManualClock, seed: int
) -> None:
    check_random_commands(catalog, shards, storage, clock, random.Random(seed), 100)


def check_random_commands(
    catalog: Catalog, shards: LocalShards, storage: Storage, clock: ManualClock, rng: random.Random, steps: int
) -> None:
    """Runs commands of several readers and writers, with merges and sweeps in between, and compares with a `Ptvc`."""
    read, write = created(storage)
    id = read.collection
    readers, writers = [read], [write]
    model: Ptvc[tuple[Any, ...], int] = Ptvc.begin(TIMELINE)
    ahead: list[Update[tuple[Any, ...], int]] = []  # appended, and beyond the upper
    for _ in range(steps):
        match rng.choice(["append", "append", "append", "reader", "writer", "downgrade", "merge", "expire"]):
            case "append":
                writer = writers.pop(rng.randrange(len(writers)))
                lower = writer.frontier.only
                upper = lower + rng.choice([1, 2, 5])
                new: list[Update[tuple[Any, ...], int]] = [
                    Update((rng.randrange(3), rng.randrange(2)), rng.randrange(lower, upper), rng.choice([1, 1, -1]))
                    for _ in range(rng.randrange(4))
                ]
                writers.append(storage.append(writer, [(one.data, one.time, one.diff) for one in new], at(upper)))
                ahead += new
            case "reader" if len(readers) < 3:
                reader, spare = storage.acquire_capabilities(id)
                storage.drop_capability(spare)
                readers.append(reader)
            case "writer" if len(writers) < 3:
                writers.append(storage.clone_capability(rng.choice(writers)))
            case "downgrade":
                reader = readers.pop(rng.randrange(len(readers)))
                later = max(reader.frontier.only, catalog.collection(id).upper.only - rng.randrange(1, 4))
                readers.append(storage.downgrade_capability(reader, at(later)))
                catalog.allow_compaction("t")
            case "merge":
                compact(catalog, shards, catalog.collection(id), holder="test", least_parts=1)
                sweep(catalog, shards)
            case "expire" if len(readers) > 1 and len(writers) > 1:
                readers, writers = readers[1:], writers[1:]
                for ms in (1, LEASE_MS - 1):
                    clock.advance(ms)
                    readers = [storage.renew_capability(one) for one in readers]
                    writers = [storage.renew_capability(one) for one in writers]
                catalog.allow_compaction("t")
        row = catalog.collection(id)
        upper = min(one.frontier.only for one in writers)
        assert row.upper == at(upper), "the upper is the meet of what the live writers hold"
        done = at_of(TIMELINE, upper)
        model = model.append(done, [one for one in ahead if not done.less_equal(one.time)])
        ahead = [one for one in ahead if done.less_equal(one.time)]
        assert all(row.since <= one.frontier for one in readers), "a live reader's history was forgotten"
        one = rng.choice(readers)
        if one.frontier.only < upper:
            found = updates_in(storage.subscribe_at(one, up_to=upper))
            assert found == compact_updates(model.updates, at_of(TIMELINE, one.frontier.only))
    assert len(model.updates) >= steps // 4


# ---- write capabilities


@ON_SQLITE
def test_an_interval_that_two_writers_fill_is_readable_once_both_have(catalog: Catalog, storage: Storage) -> None:
    read, one = created(storage)
    other = storage.clone_capability(one)
    one = storage.append(one, [((1, 1), 2, 1), ((1, 1), 7, 1)], at(10))
    assert catalog.collection(read.collection).upper == at(0)
    other = storage.append(other, [((2, 2), 4, 1)], at(5))
    assert catalog.collection(read.collection).upper == at(5)
    assert updates_in(storage.subscribe_at(read, up_to=5)) == {Update((1, 1), 2, 1), Update((2, 2), 4, 1)}
    storage.drop_capability(other)
    assert catalog.collection(read.collection).upper == at(10)
    assert Update((1, 1), 7, 1) in updates_in(storage.subscribe_at(read, up_to=10))


@ON_SQLITE
def test_a_read_of_everything_ends_at_the_upper(catalog: Catalog, shards: LocalShards, storage: Storage) -> None:
    read, one = created(storage)
    other = storage.clone_capability(one)
    storage.append(one, [((1, 1), 2, 1), ((1, 1), 7, 1)], at(10))
    storage.append(other, [], at(5))
    with read_updates(catalog, shards, catalog.collection(read.collection), holder="test") as frame:
        assert frame.column("mz_timestamp").to_pylist() == [2]


@ON_SQLITE
@pytest.mark.parametrize("name", ["mz_bucket", "mz_error", "a\0b", "\ud800", ".a", "../a", "a b", "V"])
def test_a_name_that_no_shard_can_hold_is_refused(storage: Storage, name: str) -> None:
    with pytest.raises(WrongDefinition, match="whose name a shard cannot hold"):
        storage.create(storage.new_id(), CollectionDescription("t", (Column(name, INT4), Column("v", INT4))))


@ON_SQLITE
@pytest.mark.parametrize("name", ["/a", "é", "mz_column_2"])
def test_an_odd_name_is_stored_and_read(storage: Storage, name: str) -> None:
    read, write = storage.create(storage.new_id(), CollectionDescription("t", (Column(name, INT4), Column("v", INT4))))
    storage.append(write, [((1, 2), 0, 1, None)], at(1))
    found = updates_in(storage.subscribe_at(read, 0, up_to=1))
    assert found == {Update((1, 2), 0, 1)}


def test_an_append_that_is_refused_leaves_nothing(catalog: Catalog, storage: Storage) -> None:
    read, first = created(storage)
    write = storage.append(first, [((1, 1), 2, 1)], at(5))
    refused: list[tuple[type[Error], Callable[[], object]]] = [
        (UpdateNotBeyondLower, lambda: storage.append(write, [((1, 1), 4, 1)], at(9))),
        (UpdateBeyondUpper, lambda: storage.append(write, [((1, 1), 9, 1)], at(9))),
        (UpdateBeyondUpper, lambda: storage.append(write, [((1, 1), 5, 1)], at(5))),
        (UpperWentBack, lambda: storage.append(write, [], at(4))),
        (FrontierNotHeld, lambda: storage.append(first, [((1, 1), 2, 1)], at(5))),
        (WrongRight, lambda: storage.append(WriteCapability(read.token, read.collection, at(0), None), [], at(9))),
        (FrontierNotHeld, lambda: storage.downgrade_capability(write, at(4))),
    ]
    for error, command in refused:
        with pytest.raises(error) as raised:
            command()
        assert raised.value.hint
    assert catalog.collection(read.collection).upper == at(5)
    assert live_batches(catalog, read.collection) == 1
    assert storage.append(write, [], at(5)) == write  # an empty interval
    assert updates_in(storage.subscribe_at(read, up_to=5)) == {Update((1, 1), 2, 1)}


@ON_SQLITE
def test_an_append_whose_answer_was_lost_tells_so_when_it_is_tried_again(storage: Storage) -> None:
    _, write = created(storage)
    storage.append(write, [((1, 1), 2, 1)], at(5))
    with pytest.raises(FrontierNotHeld, match=r"stands at \{5\}, not at \{0\}") as error:
        storage.append(write, [((1, 1), 2, 1)], at(5))
    assert "has taken effect" in str(error.value.detail)


@ON_SQLITE
def test_an_append_whose_batch_was_swept_is_lost_and_can_be_done_again(
    catalog: Catalog, tmp_path: Path, clock: ManualClock
) -> None:
    class Slow(LocalShards):
        def append(self, *args: Any, **kwargs: Any) -> Any:
            stats = super().append(*args, **kwargs)
            if not swept:
                clock.advance(100 * LEASE_MS)
                swept.append(sweep(catalog, self))
            return stats

    swept: list[object] = []
    storage = Storage(catalog, Slow(tmp_path), holder="slow", lease_ms=None)
    read, write = created(storage)
    with pytest.raises(AppendLost):
        storage.append(write, [((1, 1), 2, 1)], at(5))
    assert catalog.collection(read.collection).upper == at(0)
    storage.append(write, [((1, 1), 2, 1)], at(5))
    assert updates_in(storage.subscribe_at(read, up_to=5)) == {Update((1, 1), 2, 1)}


def test_an_expired_writer_blocks_nobody_and_writes_nothing(
    catalog: Catalog, storage: Storage, clock: ManualClock
) -> None:
    read, gone = created(storage)
    write = storage.clone_capability(gone)
    write = storage.append(write, [((1, 1), 2, 1)], at(5))
    clock.advance(LEASE_MS - 1)
    write = storage.renew_capability(write)
    clock.advance(1)
    assert catalog.collection(read.collection).upper == at(0)
    catalog.allow_compaction("t")
    assert catalog.collection(read.collection).upper == at(5)
    with pytest.raises(CapabilityExpired) as error:
        storage.append(gone, [((2, 2), 3, 1)], at(9))
    assert f'"{gone.label}"' in str(error.value)
    assert "Acquire" in str(error.value.hint)
    assert live_batches(catalog, read.collection) == 1
    clock.advance(LEASE_MS)  # now nobody is left, and whoever comes goes on where they stood
    read, write = storage.acquire_capabilities(read.collection)
    assert (read.frontier, write.frontier) == (at(0), at(5))
    storage.append(write, [((2, 2), 6, 1)], at(9))
    assert updates_in(storage.subscribe_at(read, up_to=9)) == {Update((1, 1), 2, 1), Update((2, 2), 6, 1)}


# ---- ends


@ON_SQLITE
def test_a_complete_collection_is_read_for_ever_and_written_never(catalog: Catalog, storage: Storage) -> None:
    read, one = created(storage)
    id = read.collection
    other = storage.clone_capability(one)
    one = storage.append(one, [((1, 1), 2, 1)], NEVER)
    assert catalog.collection(id).upper == at(0)
    storage.downgrade_capability(other, NEVER)
    assert catalog.collection(id).upper == NEVER
    for used in (one, other):
        with pytest.raises(UnknownCapability):
            storage.append(used, [], at(9))
    late, none = storage.acquire_capabilities(id)
    assert none.frontier == NEVER
    with pytest.raises(UnknownCapability):
        storage.append(none, [], NEVER)
    storage.drop_capability(none)  # which it may say, like of any other
    messages = list(storage.subscribe_at(late, as_of=10**9))
    assert messages[-1] == Upper(NEVER)
    assert isinstance(messages[0], Updates)
    assert rows(messages[0]) == [Update((1, 1), 10**9, 1)]


@ON_SQLITE
def test_a_collection_that_nobody_will_read_again_is_gone_with_its_id(catalog: Catalog, storage: Storage) -> None:
    read, write = created(storage)
    id = read.collection
    other = storage.clone_capability(read)
    storage.drop_capability(other)  # which says nothing of the future
    storage.drop_capability(write)
    storage.downgrade_capability(read, NEVER)
    assert (catalog.collection(id).since, catalog.collection(id).upper) == (NEVER, NEVER)
    with pytest.raises(UnknownCapability):
        storage.append(write, [((1, 1), 2, 1)], at(5))
    with pytest.raises(UnknownCapability):
        storage.subscribe_at(read)
    assert [one.frontier for one in storage.acquire_capabilities(id)] == [NEVER, NEVER]
    with pytest.raises(IdAlreadyBound):
        storage.create(id, CollectionDescription("t", COLUMNS))


@ON_SQLITE
def test_retention_and_dependants_keep_what_no_capability_holds(catalog: Catalog, storage: Storage) -> None:
    kept, write = created(storage, retention_ms=3)
    storage.append(write, [((1, 1), 2, 1)], at(10))
    storage.downgrade_capability(kept, NEVER)
    catalog.allow_compaction("t")
    assert catalog.collection(kept.collection).since == at(6)
    read, _ = created(storage)
    catalog.create_object(NewObject("v", "materialized view", "", "t", COLUMNS, dependencies={"c": read.collection}))
    storage.downgrade_capability(read, NEVER)
    assert catalog.collection(read.collection).since == at(0)


@ON_SQLITE
def test_dropping_capabilities_or_letting_them_expire_ends_nothing(
    catalog: Catalog, storage: Storage, clock: ManualClock
) -> None:
    read, write = created(storage)
    write = storage.append(write, [((1, 1), 2, 1)], at(5))
    storage.drop_capability(write)
    storage.drop_capability(read)
    catalog.allow_compaction("t")
    read, write = storage.acquire_capabilities(read.collection)
    assert (read.frontier, write.frontier) == (at(0), at(5))
    clock.advance(LEASE_MS)
    catalog.allow_compaction("t")
    row = catalog.collection(read.collection)
    assert (row.since, row.upper) == (at(0), at(5))
    with pytest.raises(CapabilityExpired):
        storage.clone_capability(read)
    storage.drop_capability(read)  # an expired one may be given back, too


def test_ids_come_from_the_catalog_and_denote_one_collection_for_good(storage: Storage) -> None:
    read, _ = created(storage)
    with pytest.raises(IdAlreadyBound):
        storage.create(read.collection, CollectionDescription("t", COLUMNS))
    for unknown in ("u999", "s1", "u01", "x", ""):
        with pytest.raises(UnknownObject):
            storage.create(GlobalId(unknown), CollectionDescription("t", COLUMNS))
        with pytest.raises(UnknownObject):
            storage.acquire_capabilities(GlobalId(unknown))
    assert len({storage.new_id() for _ in range(5)} | {read.collection}) == 6


@ON_SQLITE
def test_what_the_engine_writes_is_written_by_nobody_else(catalog: Catalog, storage: Storage) -> None:
    table = catalog.create_object(NewObject("x", "table", "", "t", COLUMNS)).id
    catalog.seal([Seal(table, at(0), at(5))])
    read, write = storage.acquire_capabilities(table)
    assert (read.frontier, write.frontier) == (at(0), NEVER)
    read, _ = created(storage)
    with pytest.raises(WrongSeal, match="write capabilities"):
        catalog.seal([Seal(read.collection, at(0), at(5))])


# ---- subscriptions


@ON_SQLITE
def test_a_subscription_sends_the_contents_then_updates_with_progress_in_line(storage: Storage) -> None:
    read, write = created(storage)
    write = storage.append(write, [((1, 1), 1, 1), ((1, 1), 2, 1), ((2, 2), 2, 1), ((2, 2), 4, -1)], at(5))
    with storage.subscribe_at(read, as_of=2, poll_s=0.01) as messages:
        contents = next(messages)
        assert isinstance(contents, Updates)
        assert set(rows(contents)) == {Update((1, 1), 2, 2), Update((2, 2), 2, 1)}
        assert next(messages) == Upper(at(3))
        later = next(messages)
        assert isinstance(later, Updates)
        assert rows(later) == [Update((2, 2), 4, -1)]
        assert next(messages) == Upper(at(5))
        write = storage.append(write, [], at(8))
        assert next(messages) == Upper(at(8))  # progress without updates
        storage.append(write, [((3, 3), 9, 1)], NEVER)
        last = next(messages)
        assert isinstance(last, Updates)
        assert rows(last) == [Update((3, 3), 9, 1)]
        assert list(messages) == [Upper(NEVER)]


@ON_SQLITE
def test_a_subscription_without_snapshot_sends_what_comes_after(storage: Storage) -> None:
    read, write = created(storage)
    storage.append(write, [((1, 1), 1, 1), ((1, 1), 2, 1), ((2, 2), 3, 1)], at(5))
    assert updates_in(storage.subscribe_at(read, as_of=2, snapshot=False, up_to=5)) == {Update((2, 2), 3, 1)}
    assert list(storage.subscribe_at(read, as_of=2, snapshot=False, up_to=3)) == []
    assert list(storage.subscribe_at(read, as_of=2, up_to=2)) == []


@ON_SQLITE
def test_filter_and_projection_are_pushed_down_and_errors_pass(storage: Storage) -> None:
    read, write = created(storage)
    updates = [((1, 7), 1, 1), ((1, 8), 1, 1), ((2, 7), 1, 1), ((1, 7), 2, -1), ((1, 9), 2, 1)]
    storage.append(write, [*updates, ((None, None), 1, 1, "22012 division by zero")], at(5))
    only = storage.subscribe_at(read, as_of=1, up_to=5, columns=["n"], condition=pc.field("v") > 7)
    frames = [message.frame for message in only if isinstance(message, Updates)]
    assert [frame.schema.names for frame in frames] == [["n", "mz_timestamp", "mz_diff", "mz_error"]] * 2
    assert sorted(map(str, frames[0].to_pylist())) == [
        "{'n': 1, 'mz_timestamp': 1, 'mz_diff': 1, 'mz_error': None}",
        "{'n': None, 'mz_timestamp': 1, 'mz_diff': 1, 'mz_error': '22012 division by zero'}",
    ]
    assert [row["n"] for row in frames[1].to_pylist()] == [1]
    # What a projection does not tell apart is one update, or none.
    assert updates_in(storage.subscribe_at(read, as_of=1, snapshot=False, up_to=5, columns=["n"])) == frozenset()
    with pytest.raises(Error, match='no column "w"'):
        storage.subscribe_at(read, columns=["w"])


@ON_SQLITE
def test_a_subscription_waits_for_times_that_are_not_known_yet(catalog: Catalog, shards: LocalShards) -> None:
    storage = Storage(catalog, shards, holder="test", lease_ms=None, clock=SYSTEM_CLOCK)
    read, write = created(storage)
    with storage.subscribe_at(read, as_of=3, poll_s=0.01, deadline_s=0.05) as messages:
        with pytest.raises(SubscribeDeadline):
            next(messages)
        writer = threading.Timer(0.2, lambda: storage.append(write, [((1, 1), 2, 1)], at(4)))
        patient = storage.subscribe_at(read, as_of=3, poll_s=0.01, deadline_s=30)
        writer.start()
        first = next(patient)
        writer.join()
        assert isinstance(first, Updates)
        assert rows(first) == [Update((1, 1), 3, 1)]
        assert isinstance(next(messages), Updates)  # it goes on after its deadline


@ON_SQLITE
def test_a_consumer_can_cancel_while_it_waits(catalog: Catalog, shards: LocalShards) -> None:
    storage = Storage(catalog, shards, holder="test", lease_ms=None, clock=SYSTEM_CLOCK)
    read, _ = created(storage)
    messages = storage.subscribe_at(read, poll_s=30, deadline_s=60)
    closer = threading.Timer(0.1, messages.close)
    closer.start()
    assert list(messages) == []
    closer.join()
    assert catalog.validate(read.token).frontier == at(0)  # the capability stays


@ON_SQLITE
@pytest.mark.parametrize("cancelled", ["dropped", "expired", "downgraded"])
def test_the_other_side_can_cancel_and_the_error_says_how(
    catalog: Catalog, storage: Storage, clock: ManualClock, cancelled: str
) -> None:
    read, write = created(storage)
    storage.append(write, [((1, 1), 2, 1)], at(5))
    messages = storage.subscribe_at(read, poll_s=0.01)
    while next(messages) != Upper(at(5)):
        pass
    storage.downgrade_capability(read, at(4))  # which tells times from 5 on
    storage.append(storage.acquire_capabilities(read.collection)[1], [], at(6))
    expected: type[Error] = UnknownCapability
    match cancelled:
        case "dropped":
            storage.drop_capability(read)
        case "expired":
            clock.advance(LEASE_MS)
            expected = CapabilityExpired
        case "downgraded":
            storage.downgrade_capability(read, at(5))
            expected = FrontierNotHeld
    with pytest.raises(expected) as error:
        next(messages)
    assert f'"{read.label}"' in error.value.message
    assert error.value.hint


@ON_SQLITE
def test_a_table_is_subscribed_to_like_anything_else(catalog: Catalog, shards: LocalShards, storage: Storage) -> None:
    table = catalog.create_object(NewObject("x", "table", "", "t", COLUMNS))
    row = catalog.collection(table.id)
    compare_and_append(catalog, shards, row, at(0), at(5), update_table(COLUMNS, [((1, 1), 3, 1)]), holder="engine")
    read, _ = storage.acquire_capabilities(table.id)
    assert updates_in(storage.subscribe_at(read, as_of=4, up_to=5)) == {Update((1, 1), 4, 1)}
    other, write = created(storage)
    with pytest.raises(WrongRight):
        storage.subscribe_at(ReadCapability(write.token, table.id, at(0), None))
    with pytest.raises(WrongRight):
        catalog.lease([table.id], "curious", 1000, capability=other.token)
    # What a token is on the catalog says, and not who presents it.
    storage.append(write, [((9, 9), 1, 1)], at(5))
    forged = ReadCapability(other.token, table.id, at(0), None)
    assert updates_in(storage.subscribe_at(forged, up_to=5)) == {Update((9, 9), 1, 1)}


# ---- bearers


@ON_SQLITE
def test_no_message_and_no_listing_shows_a_token(catalog: Catalog, storage: Storage, clock: ManualClock) -> None:
    read, write = created(storage)
    secrets = [one.token.partition(".")[2] for one in (read, write)]
    told = [repr(read), repr(write), repr(storage.statuses()), repr(catalog.capabilities())]
    clock.advance(LEASE_MS)
    told += [repr(storage.statuses())]
    for command in (
        lambda: storage.append(write, [], at(5)),
        lambda: storage.subscribe_at(read),
        lambda: storage.clone_capability(write),
        lambda: catalog.validate("r1.guessed"),
        lambda: catalog.validate(secrets[0]),
    ):
        with pytest.raises(Error) as error:
            command()
        told += [str(error.value), repr(error.value)]
    assert len(set(secrets)) == 2
    assert not [one for one in told for secret in secrets if secret in one]


@ON_SQLITE
def test_the_diagnostics_say_who_holds_what(catalog: Catalog, storage: Storage, clock: ManualClock) -> None:
    read, write = created(storage)
    write = storage.append(write, [((1, 1), 2, 1)], at(5))
    view = catalog.create_object(
        NewObject("v", "materialized view", "", "t", COLUMNS, dependencies={"c": read.collection}, since=3, upper=3)
    ).id
    clock.advance(LEASE_MS - 1)
    storage.renew_capability(read)
    clock.advance(1)
    found = {one.id: one for one in storage.statuses()}[read.collection]
    assert (found.since, found.upper) == (at(0), at(5))
    assert [(one.label, one.right, one.frontier, one.holder, one.is_live) for one in found.capabilities] == [
        (read.label, "read", at(0), "test", True),
        (write.label, "write", at(5), "test", False),
        (None, "read", at(2), view, True),
    ]


@ON_SQLITE
def test_renewed_keeps_capabilities_alive(url: str, shards: LocalShards) -> None:
    lease_ms = 3_000  # a third of it is what a busy machine may keep the renewing thread from its work
    with Catalog.open(url) as catalog:
        catalog.declare_timeline("t")
        storage = Storage(catalog, shards, holder="test", lease_ms=lease_ms)
        read, write = created(storage)
        idle = storage.clone_capability(read)
        with storage.renewed(read, write):
            SYSTEM_CLOCK.sleep(lease_ms / 1000 + 0.5)
            storage.append(write, [((1, 1), 2, 1)], at(5))
            assert catalog.validate(read.token).frontier == at(0)
            with pytest.raises(CapabilityExpired):
                catalog.validate(idle.token)


@ON_SQLITE
def test_what_others_hold_stays_readable_after_a_drop_until_they_let_it_go(
    catalog: Catalog, shards: LocalShards, storage: Storage
) -> None:
    for kind, ends in (("table", NEVER), ("source", at(5))):
        made = catalog.create_object(NewObject(kind, kind, "", "t", COLUMNS))
        row = catalog.collection(made.id)
        compare_and_append(catalog, shards, row, at(0), at(5), update_table(COLUMNS, [((1, 1), 3, 1)]), holder="engine")
        read, _ = storage.acquire_capabilities(made.id)
        other = storage.clone_capability(read)
        catalog.drop_object(made.id)
        assert catalog.id_of(kind) is None
        assert (catalog.collection(made.id).since, catalog.collection(made.id).upper) == (at(0), ends)
        assert isinstance(catalog.seal([Seal(made.id, at(5), at(6))]), CollectionUpperMismatch), (
            "nobody writes it any more"
        )
        sweep(catalog, shards)
        assert updates_in(storage.subscribe_at(read, as_of=4, up_to=5)) == {Update((1, 1), 4, 1)}
        storage.drop_capability(other)
        messages = storage.subscribe_at(read, as_of=4)
        assert isinstance(next(messages), Updates)
        if kind == "table":  # nobody can write it, so this is all
            assert list(messages) == [Upper(at(5)), Upper(NEVER)]
        else:
            assert next(messages) == Upper(at(5))
            with pytest.raises(UnknownObject, match="dropped"):
                next(messages)
        storage.drop_capability(read)
        assert (catalog.collection(made.id).since, catalog.collection(made.id).upper) == (NEVER, NEVER)
        sweep(catalog, shards)
        assert catalog.known_batches(made.id) == frozenset()


@ON_SQLITE
def test_what_is_dropped_ends_when_the_last_lease_on_it_has_run_out(
    catalog: Catalog, storage: Storage, clock: ManualClock
) -> None:
    table = catalog.create_object(NewObject("x", "table", "", "t", COLUMNS)).id
    storage.acquire_capabilities(table)
    catalog.drop_object(table)
    clock.advance(LEASE_MS)
    catalog.allow_compaction("t")
    assert catalog.collection(table).since == NEVER


@ON_SQLITE
def test_the_last_reader_ends_no_writer(catalog: Catalog, shards: LocalShards, storage: Storage) -> None:
    read, write = created(storage)
    write = storage.append(write, [((1, 1), 2, 1)], at(5))
    storage.downgrade_capability(read, NEVER)
    assert (catalog.collection(read.collection).since, catalog.collection(read.collection).upper) == (NEVER, at(5))
    write = storage.append(write, [((2, 2), 6, 1)], at(8))  # which nobody will read, and which is as good as written
    write = storage.renew_capability(write)
    assert catalog.collection(read.collection).upper == at(8)
    sweep(catalog, shards)
    assert catalog.known_batches(read.collection) == frozenset()
    storage.drop_capability(write)
    assert catalog.collection(read.collection).upper == NEVER


def test_a_drop_ends_neither_readers_nor_writers_of_a_collection(catalog: Catalog, storage: Storage) -> None:
    read, write = created(storage)
    catalog.drop_object(read.collection)
    write = storage.append(write, [((1, 1), 2, 1)], at(5))
    assert updates_in(storage.subscribe_at(read, as_of=2, up_to=5)) == {Update((1, 1), 2, 1)}
    storage.downgrade_capability(write, NEVER)
    assert list(storage.subscribe_at(read, as_of=9))[-1] == Upper(NEVER)
    storage.downgrade_capability(read, NEVER)
    assert catalog.collection(read.collection).since == NEVER
