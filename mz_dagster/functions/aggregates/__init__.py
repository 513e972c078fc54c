"""The aggregates: their records and algebra, and what the results of those are computed by that are spelled in others.

`algebra.py` has the records of those with an algebra of their own, `spelled.py` those of scalars over them; the other
files have these scalars, to which no SQL name leads.
"""
