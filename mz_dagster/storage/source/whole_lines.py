"""Blocks of a text, cut anywhere, as pieces that end with lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def whole_lines(blocks: Iterable[bytes], enough: int) -> Iterator[bytes]:
    r"""Yields what blocks hold in pieces of whole lines, each of so many bytes and a block at most, or of one line.

    Example:
        >>> list(whole_lines([b"a\nb", b"c\nd", b"e"], 1)), list(whole_lines([b"a\n", b"b\n"], 9))
        ([b'a\n', b'bc\n', b'de'], [b'a\nb\n'])
    """
    held, size = list[bytes](), 0
    for block in blocks:
        held.append(block)
        size += len(block)
        if size >= enough and (end := block.rfind(b"\n") + 1):
            held[-1] = block[:end]
            yield b"".join(held)
            held = [block[end:]]
            size = len(held[0])
    if size:
        yield b"".join(held)
