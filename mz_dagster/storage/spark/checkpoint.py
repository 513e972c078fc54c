"""Checkpoints: frames whose rows are kept on the server until nothing holds them.

pyspark releases them in a finalizer that builds messages and makes a call, which ends the process where it runs while
other objects are taken down (see `mz_dagster.finalizers`). Here the finalizer only says what is to be released; threads
of the session's do it. Invariant: of what `checkpointed` returns nothing is released while a frame holds it, and no
finalizer comes near protobuf or gRPC.
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any, cast

from mz_dagster.storage.spark.connecting import is_connect, releases_of
from mz_dagster.storage.spark.session import active

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def checkpointed(frame: DataFrame, *, eager: bool = True) -> DataFrame:
    """Returns the rows of `frame` without how they came about, on the executors for as long as a frame holds them.

    Args:
        frame: The rows.
        eager: Whether they are computed now, rather than when they are first asked for.
    """
    session = frame.sparkSession
    with active(session):
        found = frame.localCheckpoint(eager=eager)
    return checkpointed_frame(session, _taken_over(found)) if is_connect(session) else found


def checkpointed_frame(session: SparkSession, relation_id: str) -> DataFrame:
    """Returns the frame of what a session of Spark Connect keeps; when it goes, that is released."""
    from pyspark.sql.connect.dataframe import DataFrame as ConnectFrame

    connect: Any = session
    return cast("DataFrame", ConnectFrame(_kept_relation()(relation_id, connect), connect))


def _taken_over(frame: DataFrame) -> str:
    """Returns the id of what a frame keeps, which pyspark's finalizer does not release any more."""
    relation = cast(Any, frame)._plan
    relation_id: str = relation._relation_id
    relation._relation_id = None
    return relation_id


@cache
def _kept_relation() -> Any:
    """Returns the class of plans that refer to what is kept; made when pyspark is wanted."""
    from pyspark.sql.connect.plan import CachedRemoteRelation

    class KeptRelation(CachedRemoteRelation):
        """Refers to what is kept, and has it released when nothing refers to it any more."""

        def __init__(self, relation_id: str, session: Any) -> None:
            super().__init__(relation_id, session)
            self._releases = releases_of(session)

        def __del__(self) -> None:
            # What is made later is finalized at once, by pyspark, where nothing else is taken down.
            self._releases.call(partial(CachedRemoteRelation, self._relation_id, self._spark_session))

    return KeptRelation
