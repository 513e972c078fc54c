"""What this engine declines to compute, found out on the way; the caller leaves it to Spark, which tells errors."""

from __future__ import annotations


class Declined(Exception):
    """Says that something is not computed on columns, and why."""


class TooManyMade(Declined):
    """Says that an operator makes more rows of its input than are made at once; of a part of it, it may not."""
