"""Scalars: the types, values and expressions that rows are computed with.

Owns the types of columns (`types`), the Python form of values (`values`), the expressions over a row's columns
(`scalar`), and rows as one value (`record`). Invariant: an expression is immutable data that knows its type and whether
it may be NULL; what its calls compute is said by the layer above, `functions`.

It does not know which functions exist, resolve names, or evaluate anything.

Open to other layers beside this front door: `infinity`, `parameter_types`, `record`, `scalar`, `type_ids`, `types`,
`values`.
"""
