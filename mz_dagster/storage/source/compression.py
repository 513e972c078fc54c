"""Compressed files: which they are, and what is in them.

A file of lines whose name ends in `.gz` or `.zst` is compressed by gzip or Zstandard, in one piece or in several, one
behind the other. Its size and hash, which are bound, are those of the file as it lies there; what is read is what it
holds.

A small file may hold very much: so what it holds is counted before it is bound, in bounded memory, and more than a
compressor makes of real data is refused.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

import pyarrow as pa

from mz_dagster.storage.source.described import is_of_lines
from mz_dagster.storage.source.errors import SourceUnreadable

#: Names' ends, and what Arrow calls the codec.
_CODECS = {".gz": "gzip", ".zst": "zstd"}
#: A file may hold so many times its size, or so many bytes if that is more.
MOST_TIMES = 500
MOST_SMALL = 1 << 24
_BLOCK = 1 << 20


def codec_of(path: str, format_: str) -> str | None:
    """Returns what a file of a format is compressed by, None if by nothing: only lines are.

    Example:
        >>> codec_of("a/b.jsonl.gz", "json"), codec_of("b.csv.zst", "csv"), codec_of("b.gz", "parquet")
        ('gzip', 'zstd', None)
    """
    ending = next((ending for ending in _CODECS if path.endswith(ending)), None)
    return _CODECS[ending] if ending is not None and is_of_lines(format_) else None


def most_held(size: int) -> int:
    """Returns how many bytes a compressed file of a size may hold."""
    return max(size * MOST_TIMES, MOST_SMALL)


def blocks(file: BinaryIO, path: str, codec: str, size: int) -> Iterator[bytes]:
    """Yields what a compressed file holds, block by block.

    Args:
        file: It, at its beginning.
        path: What it is called.
        codec: What it is compressed by.
        size: How many bytes it has.

    Raises:
        SourceUnreadable: It is cut short or damaged, is not compressed by that, or holds too much.
    """
    if not size:
        raise _damaged(path, codec, "It is empty, and an archive of nothing is not")
    found = 0
    try:
        with pa.CompressedInputStream(pa.PythonFile(file, "r"), codec) as held:
            while block := held.read(_BLOCK):
                found += len(block)
                if found > most_held(size):
                    raise SourceUnreadable(
                        f'file "{path}" has {size} bytes and holds more than {most_held(size)}',
                        detail=f"What is compressed to less than a part in {MOST_TIMES} is not read: a few bytes could "
                        "fill any disk.",
                        hint="If that is meant, put what it holds there uncompressed, under a new name, and move this "
                        "file away; no file of the source was bound.",
                    )
                yield block
    except (OSError, pa.ArrowException) as error:
        raise _damaged(path, codec, str(error)) from error


def _damaged(path: str, codec: str, why: str) -> SourceUnreadable:
    return SourceUnreadable(
        f'cannot decompress file "{path}"',
        detail=f"By its name it is compressed by {codec}: {why}.",
        hint="Replace the file by one that is whole, and rename it into place once it is; or move it away. No file of "
        "the source was bound.",
    )
