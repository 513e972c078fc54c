"""How a Spark Connect server is launched from the pyspark wheel.

Owns the check for Java, the search for `SPARK_HOME`, and the properties and log files a server reads.
Settings travel in a file of mode 0600 and the token in the environment, so that neither is seen in a list of
processes. It starts nothing itself.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path

from mz_dagster.errors import OperationalError

TOKEN_VARIABLE = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
MINIMUM_JAVA = 17
_JAVA_HINT = f"Install a JDK {MINIMUM_JAVA} or newer and put it on PATH, or set JAVA_HOME."
_CORRUPTING = ((25, 0, 0), (25, 0, 1), (25, 0, 2))

# Names are relative to the server's working directory, its state folder: a sign in a path means nothing that way.
# Bounded by construction: two files of 8 MiB, whatever Spark has to say. At `info` Connect logs whole plans, and
# with them the rows of local relations.
_LOG4J = """\
rootLogger.level = warn
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = server.log
appender.file.filePattern = server.log.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{yyyy-MM-dd'T'HH:mm:ss.SSS} %p %c{1}: %m%n%ex
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 8MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 1
logger.errors.name = org.apache.spark.sql.connect.utils.ErrorUtils
logger.errors.level = fatal
"""


def spark_home() -> Path:
    """Returns the folder of the Spark that comes with pyspark, or the one that `SPARK_HOME` names."""
    given = os.environ.get("SPARK_HOME")
    if given:
        return Path(given)
    found = importlib.util.find_spec("pyspark")
    if found is None or not found.submodule_search_locations:
        raise OperationalError("pyspark is not installed", hint='Install it with: pip install "pyspark==4.2.0".')
    home = Path(next(iter(found.submodule_search_locations)))
    if not (home / "bin" / "spark-submit").exists():
        raise OperationalError(
            "the installed pyspark has no Spark server",
            detail=f"There is no bin/spark-submit in {home}.",
            hint="Install pyspark instead of pyspark-client, or name a server with spark.remote.",
        )
    return home


def java_command() -> str:
    """Returns the Java that Spark will run on.

    Raises:
        OperationalError: There is none.
    """
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if java is None:
        raise OperationalError("no Java was found", hint=_JAVA_HINT)
    return java


def java_version() -> str:
    """Returns what that Java says when asked for its version: whose it is, and which.

    Raises:
        OperationalError: There is none, or it does not run.
    """
    java = java_command()
    try:
        return _version_said(java, Path(java).stat().st_mtime_ns)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise OperationalError(f'Java at "{java}" does not run', detail=f"{error}.", hint=_JAVA_HINT) from error


@lru_cache(maxsize=8)
def _version_said(java: str, changed: int) -> str:
    answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False)
    return answer.stderr + answer.stdout


def check_java() -> int:
    """Returns the major version of the Java that Spark will run on, which is at least 17.

    Raises:
        OperationalError: There is no Java, it is too old, or known to corrupt data.
    """
    java, answer = java_command(), java_version()
    found = re.search(r'version "(?:1\.)?(\d+)(?:\.(\d+)\.(\d+))?', answer)
    if found is None:
        raise OperationalError(f'Java at "{java}" does not tell its version', hint=_JAVA_HINT)
    major, *rest = (int(one or 0) for one in found.groups())
    if major < MINIMUM_JAVA:
        raise OperationalError(
            f"Java {major} is too old", detail=f"Spark needs Java {MINIMUM_JAVA}; found {java}.", hint=_JAVA_HINT
        )
    if (major, *rest) in _CORRUPTING:
        raise OperationalError(
            f"Java {major}.{rest[0]}.{rest[1]} corrupts data and is not used",
            detail=f"Its garbage collector G1 does, in versions 25.0.0 to 25.0.2; found {java}.",
            hint="Install Java 25.0.3 or newer, or Java 17 or 21, and put it on PATH, or set JAVA_HOME.",
        )
    return major


def free_port() -> int:
    """Returns a port of the loopback interface that nothing listens on at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def write_private(path: Path, text: str) -> None:
    """Replaces the file `path` in one step by one that only this user can read."""
    draft = path.with_name(f"{path.name}.{os.getpid()}.new")
    draft.unlink(missing_ok=True)
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    draft.replace(path)


def has_ui(settings: Mapping[str, str]) -> bool:
    """Returns whether a server with these settings has Spark's user interface: only where the user says so.

    Whoever can reach the loopback interface can read there what is queried, without any token.
    """
    return settings.get("spark.ui.enabled", "false").lower() == "true"


def write_server_files(state_dir: Path, settings: Mapping[str, str], *, port: int, ui_port: int) -> list[str]:
    """Writes what a server reads when it starts, and returns the command that starts it.

    The server listens on the loopback interface only, its user interface too, if it has one.
    """
    log4j = state_dir / "log4j2.properties"
    write_private(log4j, _LOG4J)
    fixed = {
        "spark.master": "local[*]",
        "spark.ui.enabled": "false",
        # A session that nobody has used for an hour would be forgotten, and a Python session with it.
        "spark.connect.session.manager.defaultSessionTimeout": "24h",
        # The client's deadline for one stream rests on this: see channel.py.
        "spark.connect.execute.reattachable.senderMaxStreamDuration": "30s",
        "spark.python.daemon.module": "mz_dagster.storage.spark.python_daemon",
    }
    settings = (
        fixed
        | dict(settings)
        | {
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(port),
            "spark.port.maxRetries": "16",
            "spark.ui.port": str(ui_port),
            # Its working directory is its state folder. This is a list of folders, and a path may hold a comma.
            "spark.local.dir": "local",
            "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log4j.as_uri()} "
            + settings.get("spark.driver.extraJavaOptions", ""),
        }
    )
    properties = state_dir / "server.properties"
    write_private(properties, "".join(f"{key}={_property(value)}\n" for key, value in settings.items()))
    return [
        str(spark_home() / "bin" / "spark-submit"),
        "--class",
        "org.apache.spark.sql.connect.service.SparkConnectServer",
        "--properties-file",
        str(properties),
        "spark-internal",
    ]


def server_environment(token: str) -> dict[str, str]:
    """Returns the environment of a server: this process's, without what would make it a client, with the token."""
    unwanted = ("SPARK_REMOTE", "SPARK_LOCAL_REMOTE", "SPARK_CONNECT_MODE_ENABLED", "PYSPARK_SUBMIT_ARGS", "MASTER")
    environment = {name: value for name, value in os.environ.items() if name not in unwanted}
    return environment | {
        TOKEN_VARIABLE: token,
        "SPARK_HOME": str(spark_home()),
        # The functions that run in Python (`compute/spark/expressions/pure.py`) find there what they import.
        "PYSPARK_PYTHON": sys.executable,
        # The only switch that also moves the user interface off 0.0.0.0.
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_NO_DAEMONIZE": "1",
        # Java reads paths by it, and is at a loss with others than ASCII under the "C" of a cron job, say.
        "LC_ALL": "C.UTF-8",
    }


def log_file(state_dir: Path) -> Path:
    """Returns where a server logs; an older part is beside it with the suffix `.1`."""
    return state_dir / "server.log"


def output_file(state_dir: Path) -> Path:
    """Returns where a server's standard streams go: what it says before it can log."""
    return state_dir / "server.out"


def endings_file(state_dir: Path) -> Path:
    """Returns where it is written down how servers ended."""
    return state_dir / "server.ended"


def _property(value: str) -> str:
    """Returns `value` as java.util.Properties reads it back."""
    escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return "\\" + escaped if escaped.startswith(" ") else escaped
