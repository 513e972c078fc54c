"""SQLAlchemy's dialect compliance suite, through psycopg; `sqlalchemy_suite/requirements.py` names what is left out."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from mz_dagster.wire import Server
from tests.wire.conftest import dsn, url

ROOT = Path(__file__).resolve().parents[2]
SUITE = Path(__file__).with_name("sqlalchemy_suite")


@pytest.mark.deep
@pytest.mark.timeout(3000)
def test_the_suite_passes(server: Server) -> None:
    with psycopg.connect(dsn(server), autocommit=True) as connection:
        connection.execute("CREATE SCHEMA test_schema")
    plugins = ("sqlalchemy.testing.plugin.pytestplugin", "tests.wire.sqlalchemy_suite.plugin", "no:cacheprovider")
    options = (
        "-q",
        "-W",
        "default",
        "--tb",
        "short",
        "--timeout",
        "300",
        *(part for one in plugins for part in ("-p", one)),
    )
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-c", "setup.cfg", *options, "--dburi", url(server), "suite.py"],
        cwd=SUITE,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=2900,
    )
    assert ran.returncode == 0, ran.stdout[-20_000:] + ran.stderr[-2_000:]
    passed = re.search(r"(\d+) passed", ran.stdout)
    assert passed is not None
    assert int(passed[1]) > 800
