"""The project's own Python: what is wrong with it is said with its file and line."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mz_dagster.adapter import Project
from mz_dagster.errors import ProgrammingError
from mz_dagster.orchestration.drive import load_definitions


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import os\n\n1 / 0\n", r'definitions.py", line 3, fails: ZeroDivisionError: division by zero'),
        ("import json\njson.loads('{')\n", r'definitions.py", line 2, fails: JSONDecodeError: Expecting property name'),
        ("from os import nothing\n", r'definitions.py", line 1, fails: ImportError: cannot import name'),
        ("x = (\n", r'definitions.py", line 1, fails: SyntaxError: .* was never closed'),
        ("defs = 1\n", r'definitions.py" defines no `defs`'),
    ],
)
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "mz.toml").write_text("")
    (tmp_path / "definitions.py").write_text(text)
    with pytest.raises(ProgrammingError, match=message) as raised:
        load_definitions(Project.load(tmp_path))
    assert raised.value.hint


def test_a_missing_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "mz.toml").write_text("")
    with pytest.raises(ProgrammingError, match=re.escape(f'"{tmp_path}/definitions.py" does not exist')):
        load_definitions(Project.load(tmp_path))
