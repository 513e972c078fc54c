"""The step: all collections of a timeline, advanced to a tick together and sealed together.

Invariant: an output's upper never passes an input's, and no collection blocks the others.

- `graph`: the collections as a step sees them; `schedule`: in which order; `stepper`: the step; `advance`: that of
  one collection; `run`: the state of a step while it runs.
- `worker`: what computes beside the process that steps, in a process of its own; `worker_process`: that process, as the
  stepper sees it; `worker_processes`: all of them; `worker_lost`: one is gone; `work_shares`: who computes what;
  `sharing`: how the step takes over what workers made.
- `ingest`, `local_ingest`: a source's updates; `due`: when a temporal filter's state changes next by itself.
- `common_time`: a time at which all of it can be read; `report`, `outcomes`: what became of each collection.
"""
