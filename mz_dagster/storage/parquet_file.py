"""Parquet files of Delta and Iceberg tables, as this process opens them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq


def open_parquet(source: Path | Any) -> pq.ParquetFile:
    """Returns a file, to be closed: pages are held against their checksums, and INT96 is microseconds, as Spark has it.

    Args:
        source: A path, or what reads a file.
    """
    return pq.ParquetFile(source, coerce_int96_timestamp_unit="us", page_checksum_verification=True)
