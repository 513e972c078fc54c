"""Operations: what is done to a project as a whole, by whoever keeps it.

Owns the check of every invariant of a project, and copies of projects. The invariant: nothing here loses an update.
What is damaged is told with its way back, a copy is one committed state of everything, and what may be the only copy of
something is never deleted.

In the order of import:

- `quarantine`: what repairs moved out of the way;
- `manifest`, `backup`: a consistent copy of a project while everything runs, and a project, or a lost catalog, from it;
- `recovery`: data files put back from a backup;
- `rereading`: a source whose contents are damaged, read again from its files;
- `importing`: queries of other engines and dbt's models, as files of the project;
- `doctor`: every invariant of a project checked, each break explained, and repaired if that is safe.

It makes no step: what it needs of a project's meaning it asks of `adapter`, and nothing below
knows of it.

Open to other layers beside this front door: `backup`, `doctor`, `importing`, `importing.report`, `quarantine`,
`rereading`.
"""
