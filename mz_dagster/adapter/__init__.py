"""The adapter: SQL statements become commands to the engine, each at a time that the oracle allows.

Owns projects and sessions: names and their definitions, timestamp selection, reads, writes and definitions as SQL, and
the engine's commands that runs and sensors share. The invariant: commands appear to take effect one after the other,
in the order of their timestamps; a read sees every write that was acknowledged before it (strict serializable), and
what it returns is exactly its query at its timestamp.

In the order of import:

- `project`, `introspection`: settings; the relations of `mz_catalog` and `mz_internal`.
- `definition`, `project_files`: what a CREATE statement says; what a project's files define.
- `catalog_definitions`, `apply`: what the catalog holds, as plans and graphs; making it hold the project.
- `engine`: poll, step, reach, compact.
- `timestamps`, `peeks`, `dml`, `ddl`, `shows`: what statements are made of.
- `session`, `connection`: statements in, results out; PEP 249.
- `reading`: a collection at a time as a Spark DataFrame.

It plans nothing itself, renders nothing and writes no batch but a table's.
"""

from mz_dagster.adapter.apply import Applied
from mz_dagster.adapter.connection import Connection, Cursor, connect
from mz_dagster.adapter.engine import Engine, Poll, SecondRunner
from mz_dagster.adapter.project import BadSettings, NoProject, Project
from mz_dagster.adapter.project_files import BadProjectFile, ProjectObject, load_objects
from mz_dagster.adapter.reading import read
from mz_dagster.adapter.session import Result, Session
from mz_dagster.adapter.timestamps import Isolation, NoValidTimestamp

__all__ = [
    "Applied",
    "BadProjectFile",
    "BadSettings",
    "Connection",
    "Cursor",
    "Engine",
    "Isolation",
    "NoProject",
    "NoValidTimestamp",
    "Poll",
    "Project",
    "ProjectObject",
    "Result",
    "SecondRunner",
    "Session",
    "connect",
    "load_objects",
    "read",
]
