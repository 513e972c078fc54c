"""Sinks: what leaves a collection for readers outside, at each tick.

Owns the seam (`sink`) and the sinks behind it: `delta_sink` writes plain Delta tables, with the columns that
`delta_columns` says.

Invariant: what is there belongs to one time, up to which the sink stands, and it says itself which: a write that is
repeated, after a crash or by another process, changes nothing. Only what is sealed is written, so nothing that is there
is ever taken back.

It does not choose times nor read collections: a step does (`compute.step.sinks`).
"""
