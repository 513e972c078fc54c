"""The command line: `mz-dagster COMMAND`.

Owns arguments, what is printed, and exit codes: 0 if the command did what it says, 1 if it failed (the
error, its detail and its hint go to standard error), 2 if the arguments are wrong, 3 if `plan --check` found changes,
130 if interrupted, 143 if terminated. Every command but `sql`, `init` and `restore` needs a project: the folder named
by `--project`, or the nearest folder above the current one that holds an `mz.toml`; `sql` makes any folder an embedded
project, as `mz_dagster.connect` does.

It decides nothing: each command is a call of the adapter or of the orchestration.
"""

from __future__ import annotations

import argparse
import atexit
import gc
import logging
import os
import shlex
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from mz_dagster.budget import EngineSetting
from mz_dagster.cli.changes import hydration, print_changes, print_faults, print_queries, shown_name
from mz_dagster.cli.importing import import_queries, import_tests
from mz_dagster.cli.state import MANY_VIEWS, ROWS_SHOWN, has_many_views, print_checks, print_frontiers, print_views
from mz_dagster.cli.statements import Progress, execute
from mz_dagster.cli.tables import print_table
from mz_dagster.errors import Error, InternalError, OperationalError, ProgrammingError
from mz_dagster.garbage import loading_modules
from mz_dagster.process_exit import exit_process
from mz_dagster.progress import Bars, Lines, Reporter, reported_to
from mz_dagster.version import __version__

if TYPE_CHECKING:
    from mz_dagster.adapter import Engine, Project
    from mz_dagster.cli.shell_commands import ShellCommands
    from mz_dagster.orchestration.drive import RunDone
    from mz_dagster.storage.spark import ServerInfo

#: After how many new objects, and young collections, Python looks for cycles: what a short command makes stays.
_COLLECTED_AFTER = (50_000, 20, 20)


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code."""
    gc.set_threshold(*_COLLECTED_AFTER)
    atexit.unregister(gc.freeze)
    atexit.register(gc.freeze)  # a process that ends needs no look for cycles: half a second after a run
    parser = _parser()
    options = parser.parse_args(arguments)
    logging.basicConfig(
        level=logging.DEBUG if options.verbose else logging.WARNING, format="%(asctime)s %(name)s: %(message)s"
    )
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        with _terminable(), reported_to(_reporter()):
            return command(options)
    except Error as error:
        print(error.shown(), file=sys.stderr)
        return 1
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except Terminated:
        print("terminated; what was acknowledged is durable", file=sys.stderr)
        return exit_process(128 + signal.SIGTERM)
    except Exception as error:
        # Not by a boundary around the command: a pipe that broke ends it in peace.
        from mz_dagster.storage.foreign import as_error

        told = as_error(error)
        if isinstance(told, InternalError):
            logging.getLogger("mz_dagster").error("unexpected error", exc_info=error)
        print(told.shown(), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted; what was acknowledged is durable", file=sys.stderr)
        return exit_process(128 + signal.SIGINT)


def _reporter() -> Reporter:
    """Returns what shows how far long work is: bars to who looks, else lines."""
    if not sys.stderr.isatty():
        return Lines(_print_aside)
    # While a run is on, Dagster captures what goes to the standard streams.
    return Bars(os.fdopen(os.dup(sys.stderr.fileno()), "w", encoding="utf-8"))


class Terminated(KeyboardInterrupt):
    """Says that the process was asked to end, so that it gives its leases back on its way out."""


@contextmanager
def _terminable() -> Iterator[None]:
    """Ends a block by `Terminated` when SIGTERM arrives; elsewhere than in the main thread it cannot, and does not."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def terminate(number: int, frame: object) -> None:
        raise Terminated

    before = signal.signal(signal.SIGTERM, terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before or signal.SIG_DFL)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mz-dagster", description="Incrementally maintained SQL views on Dagster, Spark and Delta Lake."
    )
    parser.add_argument("--version", action="version", version=f"mz-dagster {__version__}")
    parser.add_argument("--project", type=Path, metavar="FOLDER", help="the project (default: found from here)")
    parser.add_argument("--verbose", action="store_true", help="log what happens")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    init = commands.add_parser("init", help="scaffold a project: SQL files, sample data, and what Dagster loads")
    init.add_argument("folder", type=Path, nargs="?", default=Path(), help="where (default: here); made if missing")
    init.add_argument("--name", help="the project's name (default: the folder's)")
    init.set_defaults(command=_init)

    importing = commands.add_parser("import", help="translate another engine's queries, or dbt's models, into assets/")
    importing.add_argument(
        "path",
        type=Path,
        nargs="+",
        metavar="[dbt-tests] PATH",
        help="a file or folder of .sql, or dbt's manifest.json; with dbt-tests, its schema.yml or a folder of such",
    )
    importing.add_argument(
        "--dialect",
        metavar="NAME",
        help="what they are written in: spark, duckdb, ... (default: what dbt's manifest says)",
    )
    importing.add_argument(
        "--check", action="store_true", help="run both on the project's data and compare (Spark, DuckDB)"
    )
    importing.add_argument("--dry-run", action="store_true", help="write nothing")
    importing.add_argument(
        "--format", choices=["table", "json"], default="table", help="of the report (default: table)"
    )
    importing.set_defaults(command=_import)

    run = commands.add_parser("run", help="drive the project in this process, by its sensors and runs or continuously")
    run.add_argument("--ticks", type=_positive, default=1, metavar="N", help="how many ticks to run (default: 1)")
    run.add_argument("--continuous", action="store_true", help="poll and step until interrupted; no sensors, no runs")
    run.add_argument("--interval", type=_seconds, metavar="S", help="least seconds between two ticks (default: 0.25)")
    run.add_argument("--for", dest="for_s", type=_seconds, metavar="S", help="end after so many seconds")
    run.add_argument("--timeline", metavar="NAME", help="the timeline to drive (default: the project's own)")
    run.add_argument("--rows", type=_positive, metavar="N", help=f"how many rows of each view to print ({ROWS_SHOWN}; "
                     f"of a project with more than {MANY_VIEWS} views none)")  # fmt: skip
    run.set_defaults(command=_run)

    dev = commands.add_parser("dev", help="open the project in Dagster's UI, with its daemon")
    dev.add_argument("--port", type=_positive, default=3000, help="the UI's port on 127.0.0.1 (default: 3000)")
    dev.set_defaults(command=_dev)

    sql = commands.add_parser("sql", help="execute SQL; without -c or -f a shell, or what standard input holds")
    sql.add_argument("-c", dest="texts", action="append", metavar="SQL", help="execute this (may be repeated)")
    sql.add_argument(
        "-f", dest="texts", action="append", type=Path, metavar="FILE", help="execute a file's statements, one by one"
    )
    sql.add_argument(
        "--format", choices=["table", "csv", "json", "markdown"], default="table", help="of rows (default: table)"
    )
    sql.add_argument("--serializable", action="store_true", help="read the latest complete time instead of waiting")
    sql.set_defaults(command=_sql)

    serve = commands.add_parser("serve", help="let psql and drivers connect: PostgreSQL's protocol")
    serve.add_argument("--host", default="127.0.0.1", help="where to listen (default: 127.0.0.1)")
    serve.add_argument("--port", type=_port, default=6875, help="at which port, 0 for any that is free (default: 6875)")
    serve.add_argument("--certificate", type=Path, metavar="FILE", help="a certificate in PEM, for TLS")
    serve.add_argument("--key", type=Path, metavar="FILE", help="the certificate's key")
    serve.add_argument(
        "--connections", type=_positive, default=100, metavar="N", help="clients at once, at most (default: 100)"
    )
    serve.set_defaults(command=_serve)

    replica = commands.add_parser("replica", help="compute what views need beside whoever leads, until interrupted")
    replica.add_argument("name", help='what others see it by, in "mz_replicas"')
    replica.add_argument(
        "--engine", choices=[one.value for one in EngineSetting], help="who computes in it (default: as mz.toml says)"
    )
    replica.add_argument("--for", dest="for_s", type=_seconds, metavar="S", help="end after so many seconds")
    replica.set_defaults(command=_replica)

    frontiers = commands.add_parser("frontiers", help="show since and upper of every collection")
    frontiers.set_defaults(command=_frontiers)

    compact = commands.add_parser("compact", help="forget history that retention allows to, merge batches and sweep")
    compact.set_defaults(command=_compact)

    backup = commands.add_parser("backup", help="copy the project to a folder, as it is now, while everything runs")
    backup.add_argument("target", type=Path, help="an empty folder, or one to be made, outside of the project")
    backup.set_defaults(command=_backup)

    restore = commands.add_parser("restore", help="make a project from a backup")
    restore.add_argument("source", type=Path, help="the backup")
    restore.add_argument("folder", type=Path, help="the project's folder: an empty one, or one to be made")
    restore.add_argument("--catalog", metavar="URL", help="a database for its catalog (default: SQLite in the project)")
    restore.set_defaults(command=_restore)

    recover = commands.add_parser("recover", help="give the project, whose catalog is lost, that of a backup")
    recover.add_argument("source", type=Path, help="the backup")
    recover.add_argument("--damaged", action="store_true", help="move the damaged catalog that is there out of the way")
    recover.set_defaults(command=_recover)

    doctor = commands.add_parser("doctor", help="check every invariant of the project; exit with 1 if one is broken")
    doctor.add_argument(
        "--deep", action="store_true", help="read every row, and hash every file that a source has read"
    )
    doctor.add_argument("--repair", action="store_true", help="repair what is safe to repair, and check again")
    doctor.add_argument(
        "--from-backup",
        type=Path,
        metavar="FOLDER",
        help="first put data files that are damaged or gone back from a backup, as they were written",
    )
    doctor.set_defaults(command=_doctor)

    rebuild = commands.add_parser(
        "rebuild", help="make damaged views and indexes anew from what they read, with all that reads them"
    )
    rebuild.add_argument(
        "names",
        nargs="+",
        metavar="NAME",
        help="a view or an index, by name or id; or an arrangement, as doctor and frontiers call it",
    )
    rebuild.set_defaults(command=_rebuild)

    reread = commands.add_parser(
        "reread",
        help="read all files of a damaged source again, into the same collection",
        description="Reads all files of a damaged source again, into the same collection. A source with errors of its "
        'data is not damaged: mz-dagster sql -c "ALTER SOURCE name DROP ERRORS" has it go on without them.',
    )
    reread.add_argument("name", metavar="SOURCE", help="the source, by name or id")
    reread.set_defaults(command=_reread)

    quarantine = commands.add_parser("quarantine", help="list what repairs moved out of the way and nothing reads")
    quarantine.add_argument("--empty", action="store_true", help="delete it, for good")
    quarantine.set_defaults(command=_quarantine)

    explain = commands.add_parser("explain", help="show how a view or a query is maintained")
    explain.add_argument("target", help="the name of a view, or a query")
    explain.set_defaults(command=_explain)

    plan = commands.add_parser("plan", help="show what applying the project's files would do and cost; changes nothing")
    plan.add_argument("--drop", action="store_true", help="as apply --drop: drop what the files no longer define")
    plan.add_argument("--check", action="store_true", help="exit with 3 if applying would change anything")
    plan.set_defaults(command=_plan)

    apply = commands.add_parser("apply", help="create and replace what the project's files define")
    apply.add_argument("--drop", action="store_true", help="also drop what the files once defined and no longer do")
    apply.set_defaults(command=_apply)

    spark = commands.add_parser("spark", help="prepare, start, stop or look at the project's Spark")
    spark.add_argument(
        "what",
        choices=["prepare", "start", "stop", "status"],
        help="prepare: fetch its packages and keep an archive of its classes, once, so that starts take half the time",
    )
    spark.add_argument(
        "--all", action="store_true", help="stop or look at the local servers of all projects of this user"
    )
    spark.set_defaults(command=_spark)
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _port(text: str) -> int:
    number = int(text)
    if not 0 <= number < 65_536:
        raise argparse.ArgumentTypeError("must be less than 65536")
    return number


def _seconds(text: str) -> float:
    number = float(text)
    if not 0.05 <= number < 1e9:
        raise argparse.ArgumentTypeError("must be at least 0.05")
    return number


def _project(options: argparse.Namespace) -> Project:
    with loading_modules():
        from mz_dagster.adapter import Project

    return Project.load(options.project) if options.project is not None else Project.find(Path.cwd())


def _engine(options: argparse.Namespace) -> Engine:
    project = _project(options)
    from mz_dagster.adapter import Engine

    return Engine(project)


# ---- commands


def _init(options: argparse.Namespace) -> int:
    from mz_dagster.orchestration.scaffold import scaffold_project

    folder: Path = options.folder
    for path in scaffold_project(folder, name=options.name):
        print(f"created {path}")
    print("\nnext:")
    if folder.resolve() != Path.cwd():
        print(f"    cd {shlex.quote(str(folder))}")
    print("    mz-dagster run    # one tick: the files in landing/ become readable")
    print("    mz-dagster dev    # Dagster's UI and daemon, tick after tick; dagster dev and dg dev work, too")
    return 0


def _import(options: argparse.Namespace) -> int:
    project, paths = _project(options), options.path
    if len(paths) == 2 and str(paths[0]) == "dbt-tests":
        return import_tests(project, paths[1], options)
    if len(paths) != 1:
        raise ProgrammingError("one path is imported at a time", hint="mz-dagster import PATH, or dbt-tests PATH.")
    return import_queries(project, paths[0], options)


def _run(options: argparse.Namespace) -> int:
    with loading_modules():
        from mz_dagster.adapter import Engine
        from mz_dagster.orchestration.drive import RunFailed, drive, instance_of, load_definitions

    project = _project(options)
    print(f"project {project.name} in {project.root}", flush=True)
    if options.continuous:
        return _run_continuously(options, project)
    done, failure = options.ticks, None
    with instance_of(project) as instance:
        try:
            done = drive(load_definitions(project), instance, ticks=options.ticks, on_run=_print_run, tell=_print_line)
        except RunFailed as failed:
            failure = failed
    with Engine(
        replace(project, polls_for_reads=False)
    ) as engine:  # what the runs have made, and nothing that came since
        unread = print_views(engine, options.rows)
        print_checks(engine)
        print_frontiers(engine, arrangements=options.rows is not None or not has_many_views(engine))
    if told := failure or unread:
        raise told
    if done < options.ticks:
        print(f"{done} of {options.ticks} ticks: the sensors found nothing more to do")
    return 0


def _run_continuously(options: argparse.Namespace, project: Project) -> int:
    """Drives a timeline until a signal; the step at work ends first, unless there is a second signal."""
    from mz_dagster.adapter import Engine
    from mz_dagster.orchestration.continuous import INTERVAL_S, Continuous
    from mz_dagster.orchestration.drive import instance_of, load_definitions, tell
    from mz_dagster.orchestration.recording import asset_specs

    stop = threading.Event()

    def ended(number: int, frame: object) -> None:
        signal.signal(number, signal.default_int_handler)
        stop.set()

    timeline = options.timeline or project.timeline
    with instance_of(project) as instance, Engine(project) as engine:
        repository = load_definitions(project).get_repository_def()
        _apply_told(engine)
        specs = asset_specs(repository, engine, timeline)
        interval_s = INTERVAL_S if options.interval is None else options.interval
        loop = Continuous(engine, instance, timeline, specs, _print_line, interval_s, options.for_s, stop)
        before = {number: signal.signal(number, ended) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            for events in loop.run():
                tell(instance, events)
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
    print(f"ended; {loop.ticks} ticks were closed")
    return 0


def _print_line(line: str) -> None:
    print(line, flush=True)


def _print_aside(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _print_run(run: RunDone) -> None:
    print(f"\ntick {run.partition}: {run.seconds:.1f} s")
    print_table(
        ("collection", "outcome", "updates", "errors", "seconds", "engine"),
        [(one.name, one.outcome, one.rows, one.errors, f"{one.seconds:.2f}", one.engine) for one in run.assets],
    )
    sys.stdout.flush()


def _apply_told(engine: Engine) -> None:
    """Applies the project; what is wrong in it is told, and the rest goes on."""
    from mz_dagster.adapter import NotAllApplied, apply_project

    try:
        apply_project(engine)
    except NotAllApplied as error:
        print_faults(error.plan.faults)


def _dev(options: argparse.Namespace) -> int:
    with loading_modules():
        from mz_dagster.adapter import Engine
        from mz_dagster.orchestration.drive import dagster_home

    project = _project(options)
    with Engine(project) as engine:
        _apply_told(engine)
    home = dagster_home(project)
    os.environ["DAGSTER_HOME"] = str(home)
    dagster = Path(sys.executable).with_name("dagster")
    command = ["dagster", "dev", "-w", str(project.root / "workspace.yaml"), "-h", "127.0.0.1", "-p", str(options.port)]
    os.chdir(project.root)
    print(f"Dagster's UI will be at 127.0.0.1, port {options.port}; stop it with Ctrl-C", flush=True)
    os.execv(dagster, command)


def _sql(options: argparse.Namespace) -> int:
    with loading_modules():
        from mz_dagster.adapter import Engine, Isolation, Project, Session
    from mz_dagster.cli.output import Output, OutputFormat
    from mz_dagster.cli.scripts import commands_of, execute_file, execute_text

    project = Project.load(options.project) if options.project is not None else Project.find_or_embed(Path.cwd())
    isolation = Isolation.SERIALIZABLE if options.serializable else Isolation.STRICT_SERIALIZABLE
    with Engine(project) as engine:
        progress = Progress()
        with closing(Session(engine, isolation, progress=progress)) as session:
            commands = commands_of(session, progress, Output(OutputFormat(options.format)))
            if options.texts is None and sys.stdin.isatty() and sys.stdout.isatty():
                commands.output.pages = True
                _shell(engine, progress, commands)
            else:
                for text in options.texts or [sys.stdin.read()]:
                    if isinstance(text, Path):
                        execute_file(commands, text, progress)
                    else:
                        execute_text(commands, text, progress)
    return 0


def _serve(options: argparse.Namespace) -> int:
    # Arrow's own pools keep most of a megabyte for each thread that has ever read a row; who takes long has a thread.
    # It looks once, when it is loaded.
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
    with loading_modules():
        from mz_dagster.adapter import Engine, Project

    try:
        from mz_dagster.wire import Credentials, Server
    except ModuleNotFoundError as error:
        raise OperationalError(
            f"PostgreSQL's protocol needs a package that is not there: {error.name}",
            hint="pip install 'mz_dagster[wire]'",
        ) from error
    project = Project.load(options.project) if options.project is not None else Project.find_or_embed(Path.cwd())
    if (options.certificate is None) != (options.key is None):
        raise ProgrammingError("--certificate and --key belong together", hint="Give both.")
    certificate = None if options.certificate is None else (options.certificate, options.key)
    with Engine(project) as engine:
        credentials = Credentials.of(project.state)
        server = Server(
            engine,
            credentials,
            host=options.host,
            port=options.port,
            certificate=certificate,
            connections=options.connections,
        )
        with server:
            print(f"listening at {server.host}, port {server.port}; stop it with Ctrl-C")
            print(f"    PGPASSFILE={shlex.quote(str(credentials.path))} psql -h {server.host} -p {server.port} "
                  f"-U {shlex.quote(credentials.user)} {shlex.quote(project.name)}", flush=True)  # fmt: skip
            server.serve()
    return 0


def _replica(options: argparse.Namespace) -> int:
    with loading_modules():
        from mz_dagster.adapter import Engine
    from mz_dagster.adapter.replica import Replica

    project = _project(options)
    if options.engine is not None:
        project = replace(project, engine=EngineSetting(options.engine))
    with Engine(project) as engine:
        until = None if options.for_s is None else engine.clock.monotonic_ms() + options.for_s * 1000
        Replica(engine, options.name, _print_line).run(
            lambda: until is not None and engine.clock.monotonic_ms() >= until
        )
    return 0


def _shell(engine: Engine, progress: Progress, commands: ShellCommands) -> None:
    """Executes what is entered at a terminal, until the input ends."""
    from mz_dagster.cli.shell import read_statements
    from mz_dagster.cli.shell_commands import Left
    from mz_dagster.functions import AGGREGATES
    from mz_dagster.functions.descriptions import DESCRIPTIONS

    def names() -> Iterator[str]:
        yield from (name for name in (*DESCRIPTIONS, *AGGREGATES) if name.isidentifier())
        for row in engine.catalog.objects():
            if row.name is not None:
                yield row.name
        for collection in engine.catalog.collections():
            yield from (column.name for column in collection.columns)

    print("Statements end with a semicolon; Tab completes, \\? lists commands, Ctrl-D leaves.")
    for text in read_statements(engine.project.state / "shell-history", names):
        try:
            if text.lstrip().startswith("\\"):
                commands.run(text)
            else:
                execute(commands.session, text, progress, commands.output, lambda: commands.timing)
        except Left:
            return
        except Error as error:
            print(error.shown())
        except KeyboardInterrupt as interrupt:
            if isinstance(interrupt, Terminated):
                raise
            print("interrupted; nothing is left of the statement")


def _frontiers(options: argparse.Namespace) -> int:
    with _engine(options) as engine:
        print_frontiers(engine)
    return 0


def _compact(options: argparse.Namespace) -> int:
    with _engine(options) as engine:
        for line in engine.compact():
            print(line, flush=True)
    return 0


def _explain(options: argparse.Namespace) -> int:
    with loading_modules():
        from mz_dagster.adapter import Session

    with _engine(options) as engine:
        for row in Session(engine).execute(f"EXPLAIN {options.target}").rows:
            print(row[0])
    return 0


def _plan(options: argparse.Namespace) -> int:
    with loading_modules():
        from mz_dagster.adapter import preview_changes

    plan, cost = preview_changes(_project(options), drop=options.drop)
    print_changes(plan)
    print_faults(plan.faults)
    print_queries(plan)
    if cost.hydrations:
        print("\nhydrating, at the next step")
        print_table(
            ("collection", "reads", "updates", "bytes", "after", "states to build", "frees updates", "bytes"),
            [hydration(one) for one in cost.hydrations],
        )
    if cost.dropped:
        print("\ndropping")
        print_table(
            ("collection", "frees updates", "bytes"),
            [(name, size.updates, size.bytes) for name, size in cost.dropped.items()],
        )
    for one in cost.hydrations:
        if one.lost_files:
            lost = f"{one.lost_files} files that {one.name} has read cannot be found"
            print(f"\nWARNING: {lost}; what only they told is lost")
    if plan.faults:
        return 1
    return 3 if options.check and plan.changed else 0


def _apply(options: argparse.Namespace) -> int:
    with loading_modules():
        from mz_dagster.adapter import Action, NotAllApplied, apply_project

    with _engine(options) as engine:
        try:
            applied = apply_project(engine, drop=options.drop)
        except NotAllApplied as error:
            applied = error.plan
    for verb, names in (
        ("created", applied.created),
        ("renamed", applied.names(Action.RENAME)),
        ("altered", applied.names(Action.ALTER)),
        ("in other words", applied.names(Action.REWORD)),
        ("replaced", applied.replaced),
        ("made anew, for this release plans it otherwise", tuple(one.name for one in applied.replanned)),
        ("dropped", applied.dropped),
        ("kept", applied.kept),
    ):
        if names:
            print(f"{verb}: {', '.join(map(shown_name, names))}")
    for one in applied.references:
        print(f"foreign key: {one.statement.text}")
    if applied.orphaned:
        print(f"no file defines any more: {', '.join(map(shown_name, applied.orphaned))} (apply --drop drops them)")
    print_faults(applied.faults)
    return 1 if applied.faults else 0


def _backup(options: argparse.Namespace) -> int:
    from mz_dagster.operations.backup import backup

    made = backup(_project(options), options.target, progress=_print_line)
    print(f"backed up {made.project}: {len(made.files)} files, {made.bytes} bytes in {options.target}")
    if made.left_out:
        print(f"left out, because secret or of this place: {', '.join(made.left_out)}")
    return 0


def _restore(options: argparse.Namespace) -> int:
    from mz_dagster.operations.backup import restore

    made = restore(options.source, options.folder, catalog_url=options.catalog, progress=_print_line)
    print(f"restored {made.manifest.project} in {made.root}")
    missing = [one for one in made.manifest.left_out if one not in ("catalog.url", "storage")]
    if missing:
        print(f"set in mz.toml what the backup does not hold: {', '.join(missing)}")
    return 0


def _recover(options: argparse.Namespace) -> int:
    from mz_dagster.operations.backup import recover

    recover(_project(options), options.source, damaged=options.damaged, progress=_print_line)
    print("the project is what it was when it was backed up; the next poll takes the files that came since")
    return 0


def _doctor(options: argparse.Namespace) -> int:
    from mz_dagster.adapter.project import SETTINGS_FILE, STATE_FOLDER, NoProject
    from mz_dagster.operations.doctor import examine

    root = options.project if options.project is not None else _nearest_project(Path.cwd())
    if not any((root / one).exists() for one in (SETTINGS_FILE, STATE_FOLDER)):
        raise NoProject.at(f'"{root}"')
    found = examine(root, deep=options.deep, repair=options.repair, backup=options.from_backup, progress=_print_line)
    for line in found.repaired:
        print(f"repair: {line}")
    for one in found.findings:
        print(one)
    print("healthy" if found.healthy else "broken")
    return 0 if found.healthy else 1


def _rebuild(options: argparse.Namespace) -> int:
    from mz_dagster.adapter.rebuilding import rebuild

    with _engine(options) as engine:
        done = rebuild(engine, options.names, progress=_print_line)
    print(f"made anew: {', '.join(one.name for one in done)}")
    return 0


def _reread(options: argparse.Namespace) -> int:
    from mz_dagster.operations.rereading import reread

    with _engine(options) as engine:
        done = reread(engine, options.name, progress=_print_line)
    print(f"read {done.files} files again: {done.updates} updates; what reads it is as it was")
    return 0


def _quarantine(options: argparse.Namespace) -> int:
    from mz_dagster.operations.quarantine import empty_quarantine, kept_files

    project = _project(options)
    if options.empty:
        print(f"deleted {empty_quarantine(project)} files")
        return 0
    kept = list(kept_files(project))
    for one in kept:
        print(f"{one.path}  {one.bytes} bytes")
    print(f"{len(kept)} files" + (", kept until --empty" if kept else ""))
    return 0


def _nearest_project(start: Path) -> Path:
    """Returns the nearest folder that holds settings, even ones that cannot be read; `start` if there is none."""
    from mz_dagster.adapter.project import SETTINGS_FILE

    return next((one for one in (start, *start.parents) if (one / SETTINGS_FILE).exists()), start)


def _spark(options: argparse.Namespace) -> int:
    from mz_dagster.storage.spark import ensure_server, known_state_dirs, prepare, server_status, stop_server

    if options.all:
        if options.what in ("prepare", "start"):
            raise ProgrammingError("--all is for stop and status", hint="A server is started for one project.")
        running = [(folder, status) for folder in known_state_dirs() if (status := server_status(folder)) is not None]
        for folder, status in running:
            print(f"{folder}: {_running(status)}" if options.what == "status" else f"{folder}: stopping", flush=True)
            if options.what == "stop":
                stop_server(folder)
        print(f"{len(running)} {'stopped' if options.what == 'stop' else 'running'}")
        return 0
    config = _project(options).spark_config()
    if not config.embedded:
        print("the project names its own Spark; start, stop and look at it with its own tools")
        return 0
    match options.what:
        case "prepare":
            print(f"prepared: {prepare(config, say=lambda step: print(step, flush=True)).folder}")
        case "start":
            print(_running(ensure_server(config)))
        case "stop":
            print("stopped" if stop_server(config.state_dir) else "was not running")
        case _:
            status = server_status(config.state_dir)
            print("not running" if status is None else _running(status))
    return 0


def _running(server: ServerInfo) -> str:
    return f"running: {server.url} (process {server.pid})" + (f", UI {server.ui_url}" if server.ui_url else "")
