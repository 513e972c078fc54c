"""A plan or a collection at one time.

Invariant: an answer is exact or an error, and never less.

- `content`: a plan's content, its shared subplans computed once; `peek`: as rows in Python.
- `rows_frame`: a collection's rows as a frame, for readers outside; `discrepancy`: a collection against a plan.
"""
