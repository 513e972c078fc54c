"""The adapter: SQL statements become commands to the engine, each at a time that the oracle allows.

Owns projects and sessions: names and their definitions, timestamp selection, reads, writes and definitions as SQL, and
the engine's commands that runs and sensors share. The invariant: commands appear to take effect one after the other,
in the order of their timestamps; a read sees every write that was acknowledged before it (strict serializable), and
what it returns is exactly its query at its timestamp.

In the order of import:

- `setting_values`, `settings_file`, `project`: what `mz.toml` may say, and what it is used as; `introspection`,
  `inspection`, `activity`: the relations of `mz_catalog` and `mz_internal`, and what they look at beside the catalog.
- `definition`, `annotations`, `project_files`: what a CREATE statement says, the comment above it, a project's files;
  `defined_names`: what wrong ones define; `file_ids`, `definition_cache`: what those are in plans before they have ids;
  what was planned is not planned twice.
- `reference_columns`, `file_references`, `reference_changes`: whether a foreign key can be, those that files declare,
  and what becomes of them.
- `catalog_definitions`, `change_plan`, `apply`, `change_cost`: what the catalog holds, as plans and graphs; how the
  project's files differ from it; making it hold them, and what that costs.
- `effective_objects`: what the files define, and of what is wrong in them what was applied last.
- `health`, `retention`: why collections stay behind; history that goes by itself.
- `arrivals`, `polls`: a cheap sign that a poll may find something, and what it finds.
- `engine`: poll, step, reach, compact.
- `replica`: one more process that computes, beside whoever leads.
- `leading`: the lead of a timeline for a block; `unbinding`, `dropping_errors`: files that changed before a source had
  read them, and records that it could not read, which it goes on without.
- `rebuilding`: views and indexes that are damaged, made anew from what they read.
- `access`, `passwords`: what a session may do, and what is kept of passwords.
- `planned_queries`: what was planned once, for whoever executes it again.
- `write_attempts`, `group_commit`: for how long a write is tried, and writes that are sealed together.
- `timestamps`, `names`, `peeks`: at which time a statement reads, what its names denote, and what it reads.
- `result`, `finished_rows`, `arrow_rows`: what statements return: few rows in Python, many in Arrow's columns, of which
  portions are made as they are taken; ORDER BY and LIMIT of these; rows as record batches.
- `dml`, `constraints`, `conflicts`, `create_sql`: how writes are sealed, what tables demand of their rows, and
  definitions as text.
- `hidden_tables`, `generated_values`: tables that get their name with their rows, and the
  values that columns generate; `stand_ins`: tables that a transaction alters under its views.
- `subscriptions`, `subscribe_envelopes`: SUBSCRIBE, and the forms in which it tells changes; `polled_subscription` to
  what has no history.
- `declared_cursors`, `copy_client`: cursors that a session names; who sends and gets the rows of COPY.
- `kept_statements`: what is told of them and of prepared statements.
- `maintain`: views by right of capabilities.
- `session_settings`, `variables`, `config_calls`: which settings there are; what SET and `set_config` change.
- `sequence`: a folder with a file for each statement, and the table of which function carries out which.
- `session`, `connection`: statements in, results out; PEP 249.
- `checks`, `checking`: tests of data that are maintained, and what they say.
- `samples`, `audit`: a look at what was written; a view against its recomputation.
- `row_counts`: how many rows there are, by what came since they were counted.
- `reading`: a collection at a time as a DataFrame of Spark, Polars or pandas, or as batches of Arrow.
- `settings_text`: a project's settings without its secrets, or with another catalog.

It plans nothing itself, renders nothing and writes no batch but a table's.

Open to other layers beside this front door: `annotations`, `audit`, `cancelling`, `catalog_definitions`, `change_plan`,
`checks`, `copy_lines`, `definition`, `effective_objects`, `file_ids`, `graphs`, `group_commit`, `health`,
`kept_statements`, `leading`, `passwords`, `prepared_statements`, `project`, `project_files`, `rebuilding`, `replica`,
`result`, `session_settings`, `setting_values`, `settings_text`, `system_catalogs.facts`, `table_constraints`,
`wire_client`.
"""

from mz_dagster.adapter.apply import NotAllApplied
from mz_dagster.adapter.applying import apply_changes, apply_project
from mz_dagster.adapter.arrivals import Arrivals
from mz_dagster.adapter.audit import Audit, NegativeRows, NothingToRecompute, audit, negative_rows
from mz_dagster.adapter.change_cost import ChangeCost, Hydration, preview_changes
from mz_dagster.adapter.change_plan import Action, Change, ChangePlan, OrphanStillRead
from mz_dagster.adapter.checking import CheckResult, check_results
from mz_dagster.adapter.connection import Connection, Cursor, connect
from mz_dagster.adapter.effective_objects import effective_objects
from mz_dagster.adapter.engine import Engine, SecondRunner
from mz_dagster.adapter.health import reasons
from mz_dagster.adapter.leading import leading
from mz_dagster.adapter.maintain import maintain_view
from mz_dagster.adapter.polls import Poll
from mz_dagster.adapter.project import NoProject, Project
from mz_dagster.adapter.project_files import BadProjectFile, Fault, ProjectObject, by_cause, load_project
from mz_dagster.adapter.reading import read
from mz_dagster.adapter.reference_changes import ReferenceChange
from mz_dagster.adapter.result import Result
from mz_dagster.adapter.row_counts import RowCount, rows_at
from mz_dagster.adapter.samples import ErrorPart, Sample, errors_at, errors_written, shown, updates_written
from mz_dagster.adapter.session import Session
from mz_dagster.adapter.setting_values import BadSettings
from mz_dagster.adapter.timestamps import Isolation, NoValidTimestamp

__all__ = [
    "Action",
    "Arrivals",
    "Audit",
    "BadProjectFile",
    "BadSettings",
    "Change",
    "ChangeCost",
    "ChangePlan",
    "CheckResult",
    "Connection",
    "Cursor",
    "Engine",
    "ErrorPart",
    "Fault",
    "Hydration",
    "Isolation",
    "NegativeRows",
    "NoProject",
    "NoValidTimestamp",
    "NotAllApplied",
    "NothingToRecompute",
    "OrphanStillRead",
    "Poll",
    "Project",
    "ProjectObject",
    "ReferenceChange",
    "Result",
    "RowCount",
    "Sample",
    "SecondRunner",
    "Session",
    "apply_changes",
    "apply_project",
    "audit",
    "by_cause",
    "check_results",
    "connect",
    "effective_objects",
    "errors_at",
    "errors_written",
    "leading",
    "load_project",
    "maintain_view",
    "negative_rows",
    "preview_changes",
    "read",
    "reasons",
    "rows_at",
    "shown",
    "updates_written",
]
