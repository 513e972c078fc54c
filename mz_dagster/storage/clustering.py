"""How a large batch is laid out so that a lookup of few keys reads few of its rows.

A *layout* of B buckets by some key columns puts a row into bucket `hash(key) mod B`, B a power of two chosen so that a
bucket holds about `Budget.bucket_rows` rows, and more where there are very many. Each bucket is a file (a few, if it
is huge) and each file says its layout in the shard's second partition column:

    mz_batch=17/mz_bucket=0_2-64-5    bucket 5 of 64, by the columns at positions 0 and 2
    mz_batch=18/mz_bucket=all         no layout: any key may be there

So files explain themselves: batches of one shard may differ in key and in number of buckets, nothing else has to
remember how one was written, and a file is never judged by a key that is not its own. How many rows a lookup will read
is known from Delta's log before anything is read.

Equal keys have equal hashes: NULL is a value, all NaN are one, and -0.0 is 0.0. Different keys may share a bucket, so a
reader still has to compare. The hash itself is Spark's (`storage.spark.hashing`); only bucket numbers leave Spark.

Invariant: a row whose key is touched is in a touched file. Small batches have no layout: to them a bucket each would be
more files and nothing gained, and their writes cost no shuffle.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from mz_dagster.budget import budget

#: The most columns that a layout hashes; of longer keys it takes the first.
MOST_COLUMNS = 16

NO_LAYOUT = "all"
"""The value of `mz_bucket` where a file may hold any key."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """One bucket of a layout: the rows whose hash of `key` is `number` modulo `count`.

    Attributes:
        key: Positions of the key's columns in the collection, ascending.
        count: How many buckets the layout has, a power of two.
        number: Which of them this is.
    """

    key: tuple[int, ...]
    count: int
    number: int


@dataclass(frozen=True, slots=True)
class TouchedHashes:
    """Which hashes some keys have, modulo a power of two.

    Attributes:
        key: Positions of the key's columns in the collection, ascending.
        modulus: A power of two.
        hashes: What the keys' hashes leave modulo `modulus`.
    """

    key: tuple[int, ...]
    modulus: int
    hashes: frozenset[int]

    def may_be_in(self, bucket: Bucket | None) -> bool:
        """Returns whether a bucket, or a file of no layout (None), may hold a row of the keys.

        Example:
            >>> touched = TouchedHashes((0,), 8, frozenset({5}))
            >>> [touched.may_be_in(Bucket((0,), 4, n)) for n in range(4)]
            [False, True, False, False]
            >>> touched.may_be_in(Bucket((1,), 4, 0)), touched.may_be_in(None)
            (True, True)
        """
        if bucket is None or bucket.key != self.key:
            return True
        if bucket.count <= self.modulus:
            return any(one % bucket.count == bucket.number for one in self.hashes)
        return bucket.number % self.modulus in self.hashes


class HasBucket(Protocol):
    """Something that has a bucket: a file."""

    @property
    def rows(self) -> int:
        """How many rows it has."""
        ...

    @property
    def bucket(self) -> Bucket | None:
        """Which bucket it is; None without layout."""
        ...


def layout_key(positions: Iterable[int]) -> tuple[int, ...]:
    """Returns the columns by which a collection with the key `positions` is laid out; their order does not matter."""
    return tuple(sorted(dict.fromkeys(positions)))[:MOST_COLUMNS]


def bucket_count(rows: int | None) -> int:
    """Returns how many buckets a batch of about so many rows gets; 1, no layout, if it is small or nobody knows.

    Example:
        >>> bucket_count(None), bucket_count(1_000), bucket_count(1_000_000), bucket_count(6_000_000)
        (1, 1, 32, 32)
        >>> bucket_count(60_000_000), bucket_count(10**9)
        (256, 1024)
    """
    if rows is None or rows <= budget().clustered_rows:
        return 1
    few, many = (_power_of_two(-(-rows // most)) for most in (budget().bucket_rows, budget().most_bucket_rows))
    return max(min(few, budget().few_buckets), min(many, budget().most_buckets))


def _power_of_two(least: int) -> int:
    """Returns the least power of two that is not less."""
    return 1 << (least - 1).bit_length()


def bucket_prefix(key: Sequence[int], count: int) -> str:
    """Returns what the partition values of a layout begin with; the bucket's number follows.

    Example:
        >>> bucket_prefix((0, 2), 64)
        '0_2-64-'
    """
    return f"{'_'.join(map(str, key))}-{count}-"


def bucket_of(value: str) -> Bucket | None:
    """Returns what a partition value says; None for `NO_LAYOUT`.

    Example:
        >>> bucket_of("0_2-64-5"), bucket_of("all")
        (Bucket(key=(0, 2), count=64, number=5), None)
    """
    if value == NO_LAYOUT:
        return None
    key, count, number = value.split("-")
    return Bucket(tuple(map(int, key.split("_"))), int(count), int(number))


def may_hold(bucket: Bucket | None, touched: Collection[TouchedHashes]) -> bool:
    """Returns whether a file may hold a row of the touched keys; always, if nothing is said of its key."""
    return all(one.may_be_in(bucket) for one in touched)


def moduli(files: Iterable[HasBucket], positions: Collection[int]) -> dict[tuple[int, ...], int]:
    """Returns, for each key by which a lookup on `positions` could leave files out, the modulus to know hashes by."""
    found: dict[tuple[int, ...], int] = {}
    for file in files:
        if file.bucket is not None and set(file.bucket.key) <= set(positions):
            found[file.bucket.key] = max(found.get(file.bucket.key, 1), file.bucket.count)
    return found
