"""The one warm Spark: where it comes from, how it is watched, and sessions on it.

Owns: starting, finding and stopping the embedded Spark Connect server of a project; sessions on it, on a
server the user names, or in this process (Spark Classic); and the deadlines that turn a Spark that is gone
into an error. Invariant: no call made through a session from here waits forever for a server that does not
answer, and no token is ever on a command line, in a log or in a `repr`.

- `config.py`: what the user may choose, and the settings that exactness and speed need;
- `launch.py`: Java, `SPARK_HOME`, and the files and command of a server;
- `python_daemon.py`: the parent of the server's Python workers, run by Spark;
- `process.py`: a process that can be told from a later one with the same pid;
- `server.py`: `ensure_server`, `server_status`, `stop_server`;
- `prepared.py` and `preparing.py`: `with_prepared_start` and `prepare`, for starts in half the time;
- `known_servers.py`: where this user's servers keep their files;
- `channel.py`: the gRPC channel with deadlines and a retry policy that gives up;
- `connecting.py`: a session on one server, made, asked and ended;
- `orphans.py`: the sessions of processes that were killed, and the end of what they compute;
- `session.py`: `open_session`, `borrowed_session`, `close_session`, `active`, `warm_up`;
- `checkpoint.py`: `checkpointed`, for frames whose rows stay on the server until nothing holds them;
- `local_rows.py`: `frame_of_rows`, for frames that hold rows of this process;
- `probe.py`: whether the executors of a Spark that somebody else runs have the files and the Python that they need;
- `globs.py`: `escaped_glob`, for paths that name files;
- `deadline.py`: `call_with_deadline` and `reporting_lost_spark`.

It knows nothing of shards. Importing it does not import pyspark: only the first session does.
"""

from mz_dagster.storage.spark.checkpoint import checkpointed
from mz_dagster.storage.spark.config import SparkConfig
from mz_dagster.storage.spark.deadline import call_with_deadline, reporting_lost_spark
from mz_dagster.storage.spark.known_servers import known_state_dirs
from mz_dagster.storage.spark.local_rows import frame_of_rows
from mz_dagster.storage.spark.preparing import prepare
from mz_dagster.storage.spark.server import ServerInfo, ensure_server, server_status, stop_server
from mz_dagster.storage.spark.session import (
    active,
    borrowed_session,
    close_session,
    close_sessions,
    open_session,
    warm_up,
)

__all__ = [
    "ServerInfo",
    "SparkConfig",
    "active",
    "borrowed_session",
    "call_with_deadline",
    "checkpointed",
    "close_session",
    "close_sessions",
    "ensure_server",
    "frame_of_rows",
    "known_state_dirs",
    "open_session",
    "prepare",
    "reporting_lost_spark",
    "server_status",
    "stop_server",
    "warm_up",
]
