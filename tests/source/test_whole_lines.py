"""A file of lines that is decoded some lines at a time has the records that it has in one piece."""

from __future__ import annotations

import gzip
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mz_dagster.scalars.types import INT4, TEXT, Column
from mz_dagster.storage.source import FileSource, files
from mz_dagster.storage.source.errors import BoundFileChanged
from mz_dagster.storage.source.files import Format
from mz_dagster.storage.source.folder import InFolder
from mz_dagster.storage.source.whole_lines import whole_lines
from tests.budgets import SetBudget
from tests.source.landing import bind, drop

COLUMNS = (Column("id", INT4, nullable=False), Column("name", TEXT))
#: Blank lines, what is malformed, a carriage return, bytes that are no text, a mark at the beginning, no end.
CONTENTS: dict[Format, bytes] = {
    "json": b'\xef\xbb\xbf{"id": 1, "name": "\xc3\xa9"}\n\n\n'
    b'{"id": "x"}\r\n{"id": \xff}\n{"id": 3, "name": "\0"}\n{"id": 4}',
    "csv": b'\xef\xbb\xbfname,id\n"a \xc3\xa9",1\n\n\n,x\r\n\xff,2\n"b,c",3\n"",4',
}


@given(st.lists(st.binary(max_size=6).map(lambda one: one.replace(b"a", b"\n"))), st.integers(1, 9))
def test_pieces_are_the_blocks_and_end_with_lines(blocks: list[bytes], enough: int) -> None:
    pieces = list(whole_lines(blocks, enough))
    assert b"".join(pieces) == b"".join(blocks)
    assert all(one.endswith(b"\n") for one in pieces[:-1])
    assert all(pieces)


@pytest.mark.parametrize("format_", ["json", "csv"])
@pytest.mark.parametrize("is_compressed", [False, True])
def test_so_records_are_those_of_the_whole(
    tmp_path: Path, set_budget: SetBudget, monkeypatch: pytest.MonkeyPatch, format_: Format, is_compressed: bool
) -> None:
    content = CONTENTS[format_]
    file = drop(tmp_path, "f.gz" if is_compressed else "f", gzip.compress(content) if is_compressed else content)
    source = FileSource(InFolder(tmp_path), "*", format_, COLUMNS)
    expected = source.read_here(bind({1: [file]})).to_pylist()
    cut: list[bytes] = []

    def in_threes(blocks: Iterable[bytes], enough: int) -> Iterator[bytes]:
        whole = b"".join(blocks)
        for piece in whole_lines([whole[at : at + 3] for at in range(0, len(whole), 3)], enough):
            cut.append(piece)
            yield piece

    monkeypatch.setattr(files, "whole_lines", in_threes)
    set_budget(text_bytes=1)
    assert source.read_here(bind({1: [file]})).to_pylist() == expected
    assert len(cut) > 4, "it was read in one piece"


def test_a_file_that_changes_between_its_pieces_is_an_error(
    tmp_path: Path, set_budget: SetBudget, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = drop(tmp_path, "f", '{"id": 1}\n{"id": 2}\n')

    def changed(blocks: Iterable[bytes], enough: int) -> Iterator[bytes]:
        yield from whole_lines(blocks, enough)
        drop(tmp_path, "f", '{"id": 1}\n{"id": 3}\n')

    monkeypatch.setattr(files, "whole_lines", changed)
    set_budget(text_bytes=1)
    with pytest.raises(BoundFileChanged):
        FileSource(InFolder(tmp_path), "*", "json", COLUMNS).read_here(bind({1: [file]}))
