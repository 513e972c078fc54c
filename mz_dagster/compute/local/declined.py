"""What is too much for this engine, found out on the way: a budget is exceeded, and the caller leaves it to Spark.

What is wrong with the data is no reason: it is an error of the row, of the group or of the whole, as Spark tells it.
"""

from __future__ import annotations


class Declined(Exception):
    """Says that a budget is exceeded, and by what."""


class TooManyMade(Declined):
    """Says that an operator makes more rows of its input than are made at once; of a part of it, it may not."""
