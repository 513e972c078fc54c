"""Logical compaction: since follows retention and capabilities, and never goes back (items 49, 62 to 72, 111, 124)."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import select

from mz_dagster.catalog import (
    CapabilityExpired,
    Catalog,
    FrontierNotHeld,
    NewObject,
    Ref,
    Seal,
    Sealed,
    UnknownCapability,
    UnknownObject,
)
from mz_dagster.catalog.schema import METADATA
from mz_dagster.clock import ManualClock
from mz_dagster.formalism import EPOCH_MS, Antichain, GlobalId
from tests.catalog.connected import connected


def at(time: int) -> Antichain[int]:
    return Antichain.of(EPOCH_MS, time)


def create(catalog: Catalog, name: str, *inputs: GlobalId) -> GlobalId:
    kind = "materialized view" if inputs else "table"
    return catalog.create_object(NewObject(name, kind, "", "t", (), dependencies={one: one for one in inputs})).id


def advance(catalog: Catalog, upper: int, *ids: GlobalId) -> None:
    seals = [Seal(id, catalog.collection(id).upper, at(upper)) for id in ids]
    assert isinstance(catalog.seal(seals), Sealed)


def since(catalog: Catalog, id: GlobalId) -> int:
    return catalog.collection(id).since.only


def test_since_follows_retention(catalog: Catalog) -> None:
    x, y = create(catalog, "x"), create(catalog, "y")
    advance(catalog, 100, x, y)
    assert catalog.allow_compaction("t") == {}  # by default all history is kept
    catalog.set_retention(y, 50)
    assert catalog.allow_compaction("t", retention_ms=10) == {x: at(89), y: at(49)}
    assert catalog.allow_compaction("t", retention_ms=90) == {}  # never backwards
    assert (since(catalog, x), since(catalog, y)) == (89, 49)
    assert catalog.allow_compaction("t", retention_ms=0) == {x: at(99)}  # the newest time stays readable
    assert catalog.collection(x).is_readable_at(99)


def test_inputs_wait_for_outputs(catalog: Catalog) -> None:
    x = create(catalog, "x")
    v = create(catalog, "v", x)
    w = create(catalog, "w", v)
    advance(catalog, 100, x)
    advance(catalog, 80, v)
    advance(catalog, 60, w)
    catalog.set_retention(w, 20)
    # w: 59 - 20; v: not past since and upper - 1 of w; x: not past those of v.
    assert catalog.allow_compaction("t", retention_ms=0) == {w: at(39), v: at(39), x: at(39)}
    catalog.set_retention(w, 0)
    assert catalog.allow_compaction("t", retention_ms=0) == {w: at(59), v: at(59), x: at(59)}
    advance(catalog, 80, w)
    assert catalog.allow_compaction("t", retention_ms=0) == {w: at(79), v: at(79), x: at(79)}
    catalog.drop_object(w)
    catalog.drop_object(v)
    assert catalog.allow_compaction("t", retention_ms=0) == {x: at(99)}


def test_a_state_is_as_old_as_what_it_serves_needs(catalog: Catalog) -> None:
    """Whatever retention is: nobody reads a state but the steps of its owner."""
    x = create(catalog, "x")
    owner = Ref(1)
    new = [
        NewObject(None, "arrangement", "", "t", (), dependencies={"x": x}, owner=owner),
        NewObject("v", "materialized view", "", "t", (), dependencies={"x": x, "state": Ref(0)}),
    ]
    state, v = (row.id for row in catalog.create_objects(new))
    advance(catalog, 100, x, state, v)
    catalog.set_retention(v, 20)
    assert catalog.allow_compaction("t", retention_ms=None) == {state: at(79), v: at(79)}
    catalog.set_retention(x, 0)
    assert catalog.allow_compaction("t", retention_ms=None) == {x: at(79)}
    catalog.set_retention(v, 0)
    assert catalog.allow_compaction("t", retention_ms=90) == {state: at(99), v: at(99), x: at(99)}


def test_a_new_view_holds_its_input_while_it_hydrates(catalog: Catalog) -> None:
    x = create(catalog, "x")
    advance(catalog, 100, x)
    v = catalog.create_object(
        NewObject("v", "materialized view", "", "t", (), dependencies={"x": x}, since=50, upper=50)
    ).id
    assert catalog.allow_compaction("t", retention_ms=0) == {x: at(49)}
    advance(catalog, 100, v)
    assert catalog.allow_compaction("t", retention_ms=0) == {v: at(99), x: at(99)}


def test_a_capability_holds_since_until_it_is_downgraded_or_dropped(catalog: Catalog) -> None:
    x = create(catalog, "x")
    advance(catalog, 100, x)
    held = catalog.acquire_read(x, at(30), holder="session", ttl_ms=None)
    other = catalog.clone(held.token, holder="other", ttl_ms=None)
    assert catalog.allow_compaction("t", retention_ms=0) == {x: at(30)}
    assert catalog.downgrade(held.token, at(70)).frontier == at(70)
    assert catalog.allow_compaction("t", retention_ms=0) == {}  # the clone is independent
    catalog.drop(other.token)
    assert catalog.allow_compaction("t", retention_ms=0) == {x: at(70)}
    catalog.downgrade(held.token, Antichain.empty(EPOCH_MS))
    assert catalog.allow_compaction("t", retention_ms=0) == {x: at(99)}
    with pytest.raises(UnknownCapability):
        catalog.validate(held.token)


def test_a_capability_is_at_or_beyond_since_and_only_advances(catalog: Catalog) -> None:
    x = create(catalog, "x")
    advance(catalog, 100, x)
    catalog.allow_compaction("t", retention_ms=40)
    with pytest.raises(FrontierNotHeld) as error:
        catalog.acquire_read(x, at(58), holder="s", ttl_ms=None)
    assert "{59}" in str(error.value.hint)
    held = catalog.acquire_read(x, holder="s", ttl_ms=None)
    assert held.frontier == at(59)
    catalog.downgrade(held.token, at(70))
    with pytest.raises(FrontierNotHeld):
        catalog.downgrade(held.token, at(69))
    assert catalog.validate(held.token).frontier == at(70)


def test_an_expired_capability_is_an_error_and_holds_nothing(catalog: Catalog, clock: ManualClock) -> None:
    x = create(catalog, "x")
    advance(catalog, 100, x)
    held = catalog.acquire_read(x, at(30), holder="session", ttl_ms=50)
    clock.advance(49)
    assert catalog.renew(held.token, 50).until_ms == clock.now_ms() + 50
    clock.advance(50)
    uses: tuple[Callable[[], object], ...] = (
        lambda: catalog.validate(held.token),
        lambda: catalog.renew(held.token, 50),
        lambda: catalog.downgrade(held.token, at(60)),
        lambda: catalog.clone(held.token, holder="s", ttl_ms=1),
    )
    for use in uses:
        with pytest.raises(CapabilityExpired):
            use()
    assert catalog.allow_compaction("t", retention_ms=0) == {x: at(99)}


def test_tokens_are_unguessable_and_never_stored(catalog: Catalog, url: str) -> None:
    x = create(catalog, "x")
    one = catalog.acquire_read(x, holder="s", ttl_ms=None)
    two = catalog.acquire_read(x, holder="s", ttl_ms=None)
    head, _, secret = one.token.partition(".")
    assert len(secret) >= 43
    assert secret not in two.token
    assert one.token not in repr(one)
    for forged in ("", ".", "r1", "r1.", "r1.x", f"{head}.{two.token.partition('.')[2]}", "r" + "9" * 40 + ".x", "x.y"):
        with pytest.raises(UnknownCapability):
            catalog.validate(forged)
    with connected(url) as raw:
        stored = [row for table in METADATA.sorted_tables for row in raw.execute(select(table))]
    assert any(row.collection == x for row in stored if hasattr(row, "token_hash"))
    assert not [row for row in stored if secret in repr(row)]


def test_a_dropped_collection_grants_nothing_new(catalog: Catalog) -> None:
    x = create(catalog, "x")
    held = catalog.acquire_read(x, holder="s", ttl_ms=None)
    catalog.drop_object(x)
    assert catalog.validate(held.token) == held
    with pytest.raises(UnknownObject, match="was dropped"):
        catalog.acquire_read(x, holder="s", ttl_ms=None)
    catalog.drop(held.token)
    assert catalog.collection(x).since.is_empty
