"""What the model test draws: where crashes strike, what is appended, how long leases last."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from tests.storage.crashing import Spot

#: Where a crash may strike each kind of command.
CATALOG = ("catalog.before_commit", "catalog.committed")
SEAL = ("seal.in_transaction", "seal.sealed", *CATALOG)
WRITE = ("append.before_reserve", "append.inlined", "append.reserved", "append.written", *SEAL)
APPEND = ("append.before_seal", *WRITE)
COMPACT = (
    "compact.before_reserve",
    "compact.inlined",
    "compact.reserved",
    "compact.written",
    "compact.replaced",
    *CATALOG,
)
SWEEP = ("sweep.before_dead", "sweep.dead", "sweep.deleted", "sweep.forgotten", *CATALOG)
MINT = ("tick.before_mint", "tick.minted", *CATALOG)

#: Fail points at which one can tell: nothing has happened yet, or everything has.
BEFORE = {*APPEND, "tick.before_mint"} - {*CATALOG, "seal.sealed"}
AFTER = {"seal.sealed", "tick.minted"}


def spots(names: Sequence[str]) -> st.SearchStrategy[Spot | None]:
    """Crashes at one of the fail points, in one command of four."""
    crash = st.tuples(st.sampled_from(names), st.sampled_from([1, 1, 1, 1, 1, 1, 2, 3]))
    return st.sampled_from([False, False, False, True]).flatmap(lambda crashes: crash if crashes else st.none())


WIDTHS = st.sampled_from([1, 1, 1, 2, 2, 2, 3, 3, 4, 5, 5, None])
"""How many times an append completes; None for all that are left."""

DATA = st.tuples(st.none() | st.integers(0, 2), st.sampled_from([None, None, None, "22012"]))
OFFSETS = st.lists(st.tuples(DATA, st.integers(0, 4), st.sampled_from([-1, 1, 1, 2])), max_size=4)
TTLS = st.sampled_from([1_000, 60_000, 7_200_000])
HOLDERS = st.sampled_from(["anna", "bert"])
