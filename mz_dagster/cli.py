"""The command line: `mz-dagster COMMAND`.

Owns arguments, what is printed, and exit codes: 0 if the command did what it says, 1 if it failed (the
error, its detail and its hint go to standard error), 2 if the arguments are wrong, 130 if interrupted. Every command
but `sql` needs a project: the folder named by `--project`, or the nearest folder above the current one that holds an
`mz.toml`; `sql` makes any folder an embedded project, as `mz_dagster.connect` does.

It decides nothing: each command is a call of the adapter or of the orchestration.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from mz_dagster.errors import Error
from mz_dagster.version import __version__

if TYPE_CHECKING:
    from mz_dagster.adapter import Engine, Project, Session
    from mz_dagster.orchestration.drive import RunDone


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs one command; returns the exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    logging.basicConfig(
        level=logging.DEBUG if options.verbose else logging.WARNING, format="%(asctime)s %(name)s: %(message)s"
    )
    command: Callable[[argparse.Namespace], int] = options.command
    try:
        return command(options)
    except Error as error:
        print(f"ERROR: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        sys.stderr.close()
        return 1
    except KeyboardInterrupt:
        print("interrupted; what was acknowledged is durable", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="mz-dagster", description="Incrementally maintained SQL views on Dagster, Spark and Delta Lake."
    )
    parser.add_argument("--version", action="version", version=f"mz-dagster {__version__}")
    parser.add_argument("--project", type=Path, metavar="FOLDER", help="the project (default: found from here)")
    parser.add_argument("--verbose", action="store_true", help="log what happens")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="drive the project's sensors and runs in this process")
    run.add_argument("--ticks", type=_positive, default=1, metavar="N", help="how many ticks to run (default: 1)")
    run.add_argument("--rows", type=_positive, default=5, metavar="N", help="how many rows of each view to print")
    run.set_defaults(command=_run)

    dev = commands.add_parser("dev", help="open the project in Dagster's UI, with its daemon")
    dev.add_argument("--port", type=_positive, default=3000, help="the UI's port on 127.0.0.1 (default: 3000)")
    dev.set_defaults(command=_dev)

    sql = commands.add_parser("sql", help="execute SQL; without -c a shell, or what standard input holds")
    sql.add_argument("-c", dest="statements", action="append", metavar="SQL", help="execute this (may be repeated)")
    sql.add_argument("--serializable", action="store_true", help="read the latest complete time instead of waiting")
    sql.set_defaults(command=_sql)

    frontiers = commands.add_parser("frontiers", help="show since and upper of every collection")
    frontiers.set_defaults(command=_frontiers)

    compact = commands.add_parser("compact", help="forget history that retention allows to, merge batches and sweep")
    compact.set_defaults(command=_compact)

    explain = commands.add_parser("explain", help="show how a view or a query is maintained")
    explain.add_argument("target", help="the name of a view, or a query")
    explain.set_defaults(command=_explain)

    apply = commands.add_parser("apply", help="create what the project's files define")
    apply.set_defaults(command=_apply)

    spark = commands.add_parser("spark", help="start, stop or look at the project's Spark")
    spark.add_argument("what", choices=["start", "stop", "status"])
    spark.set_defaults(command=_spark)
    return parser


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return number


def _project(options: argparse.Namespace) -> Project:
    from mz_dagster.adapter import Project

    return Project.load(options.project) if options.project is not None else Project.find(Path.cwd())


def _engine(options: argparse.Namespace) -> Engine:
    from mz_dagster.adapter import Engine

    return Engine(_project(options))


# ---- commands


def _run(options: argparse.Namespace) -> int:
    from mz_dagster.adapter import Engine
    from mz_dagster.orchestration.drive import drive, instance_of, load_definitions

    project = _project(options)
    print(f"project {project.name} in {project.root}", flush=True)
    with instance_of(project) as instance:
        done = drive(load_definitions(project), instance, ticks=options.ticks, on_run=_print_run)
    with Engine(project) as engine:
        _print_views(engine, options.rows)
        _print_frontiers(engine)
    if done < options.ticks:
        print(f"{done} of {options.ticks} ticks: the sensors found nothing more to do")
    return 0


def _print_run(run: RunDone) -> None:
    print(f"\ntick {run.partition}: {run.seconds:.1f} s")
    _print_table(
        ("collection", "outcome", "updates", "errors", "spark s"),
        [(one.name, one.outcome, one.rows, one.errors, f"{one.spark_s:.2f}") for one in run.assets],
    )
    sys.stdout.flush()


def _print_views(engine: Engine, limit: int) -> None:
    from mz_dagster.adapter import Session

    session = Session(engine)
    for row in engine.catalog.objects("materialized view"):
        if row.name is None:
            continue
        result = session.execute(f'SELECT * FROM "{row.name}" ORDER BY 1, 2 LIMIT {limit}')
        print(f"\n{row.name}")
        _print_table([column.name for column in result.columns], result.rows)


def _dev(options: argparse.Namespace) -> int:
    from mz_dagster.adapter import Engine
    from mz_dagster.orchestration.drive import dagster_home

    project = _project(options)
    with Engine(project) as engine:
        engine.apply()
    home = dagster_home(project)
    os.environ["DAGSTER_HOME"] = str(home)
    dagster = Path(sys.executable).with_name("dagster")
    command = ["dagster", "dev", "-w", str(project.root / "workspace.yaml"), "-h", "127.0.0.1", "-p", str(options.port)]
    os.chdir(project.root)
    print(f"Dagster's UI will be at 127.0.0.1, port {options.port}; stop it with Ctrl-C", flush=True)
    os.execv(dagster, command)


def _sql(options: argparse.Namespace) -> int:
    from mz_dagster.adapter import Engine, Isolation, Project, Session

    project = Project.load(options.project) if options.project is not None else Project.find_or_embed(Path.cwd())
    isolation = Isolation.SERIALIZABLE if options.serializable else Isolation.STRICT_SERIALIZABLE
    with Engine(project) as engine:
        session = Session(engine, isolation)
        if options.statements is None and sys.stdin.isatty():
            _shell(session)
        else:
            for text in options.statements or [sys.stdin.read()]:
                _execute(session, text)
    return 0


def _execute(session: Session, text: str) -> None:
    """Executes the statements of a text and prints what each returns."""
    from mz_dagster.sql import parse

    for statement in parse(text):
        result = session.sequence(statement)
        if result.columns:
            _print_table([column.name for column in result.columns], result.rows)
        else:
            print(result.tag)


def _shell(session: Session) -> None:
    """Reads statements from a terminal, each up to its semicolon, until the input ends."""
    import readline  # noqa: F401  # gives `input` a history and keys to edit with

    print("Statements end with a semicolon; Ctrl-D leaves.")
    text = ""
    while True:
        try:
            text += input("mz> " if not text else "  > ") + "\n"
        except EOFError:
            print()
            return
        except KeyboardInterrupt:
            print()
            text = ""
            continue
        if text.rstrip().endswith(";"):
            try:
                _execute(session, text)
            except Error as error:
                print(f"ERROR: {error}")
            text = ""


def _frontiers(options: argparse.Namespace) -> int:
    with _engine(options) as engine:
        _print_frontiers(engine)
    return 0


def _print_frontiers(engine: Engine) -> None:
    names = {row.id: row.name or f"{row.kind} of {row.owner}" for row in engine.catalog.objects()}
    counts = engine.catalog.live_batch_counts()
    print("\nfrontiers")
    rows = []
    for row in engine.catalog.collections():
        batches, stats = counts.get(row.id, (0, None))
        rows.append(
            (
                names.get(row.id, row.id),
                row.timeline,
                "{}" if row.since.is_empty else row.since.only,
                "{}" if row.upper.is_empty else row.upper.only,
                batches,
                stats.rows if stats else 0,
                stats.errors if stats else 0,
                stats.bytes if stats else 0,
                row.failure or "",
            )
        )
    _print_table(("collection", "timeline", "since", "upper", "batches", "updates", "errors", "bytes", "failure"), rows)


def _compact(options: argparse.Namespace) -> int:
    with _engine(options) as engine:
        for line in engine.compact():
            print(line, flush=True)
    return 0


def _explain(options: argparse.Namespace) -> int:
    from mz_dagster.adapter import Session

    with _engine(options) as engine:
        for row in Session(engine).execute(f"EXPLAIN {options.target}").rows:
            print(row[0])
    return 0


def _apply(options: argparse.Namespace) -> int:
    with _engine(options) as engine:
        applied = engine.apply()
    for verb, names in (("created", applied.created), ("replaced", applied.replaced), ("kept", applied.kept)):
        if names:
            print(f"{verb}: {', '.join(names)}")
    if applied.orphaned:
        print(f"in the catalog and not in the files: {', '.join(applied.orphaned)} (DROP what is not needed)")
    return 0


def _spark(options: argparse.Namespace) -> int:
    from mz_dagster.adapter.engine import spark_config
    from mz_dagster.storage.spark import ensure_server, server_status, stop_server

    config = spark_config(_project(options))
    if not config.embedded:
        print("the project names its own Spark; start, stop and look at it with its own tools")
        return 0
    match options.what:
        case "start":
            server = ensure_server(config)
            print(f"running: {server.url} (process {server.pid}), UI {server.ui_url}")
        case "stop":
            print("stopped" if stop_server(config.state_dir) else "was not running")
        case _:
            status = server_status(config.state_dir)
            running = "" if status is None else f"running: {status.url} (process {status.pid}), UI {status.ui_url}"
            print(running or "not running")
    return 0


# ---- printing


def _print_table(names: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Prints rows under their columns' names, numbers to the right; NULL is empty."""
    body = [["" if cell is None else _text(cell) for cell in row] for row in rows]
    right = [bool(rows) and all(_is_number(row[i]) for row in rows) for i in range(len(names))]
    widths = [max(len(name), *(len(row[i]) for row in body)) if body else len(name) for i, name in enumerate(names)]
    for row in [list(names), ["-" * width for width in widths], *body]:
        cells = (cell.rjust(w) if flush else cell.ljust(w) for cell, w, flush in zip(row, widths, right, strict=True))
        print("  ".join(cells).rstrip())


def _text(cell: object) -> str:
    r"""Returns a cell as text, an array as PostgreSQL prints it.

    Example:
        >>> _text([1, None, "a b", "", 'say "x"'])
        '{1,NULL,"a b","","say \\"x\\""}'
    """
    return "{" + ",".join(map(_element, cell)) + "}" if isinstance(cell, list) else str(cell)


def _element(cell: object) -> str:
    if cell is None:
        return "NULL"
    text = str(cell)
    if isinstance(cell, bool):
        return text[0].lower()
    plain = text and text.upper() != "NULL" and not any(one in '{},"\\' or one.isspace() for one in text)
    return text if plain else '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _is_number(cell: object) -> bool:
    return cell is None or (isinstance(cell, int | float) and not isinstance(cell, bool))


if __name__ == "__main__":
    sys.exit(main())
