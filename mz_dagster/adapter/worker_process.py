"""The process of a worker: it opens a project's catalog and shards to read, and computes what it is sent.

It is started by the process that steps, over whose socket it gets everything else (`compute.step.worker`), and ends
with it.
"""

from __future__ import annotations

from dataclasses import dataclass

from mz_dagster.adapter.project import Project
from mz_dagster.budget import limit_memory, process_budget
from mz_dagster.catalog import Catalog
from mz_dagster.compute import WorkerProcesses, WorkerSetup
from mz_dagster.storage.local_shards import LocalShards

_MODULE = "mz_dagster.adapter.worker_process"


@dataclass(frozen=True, slots=True)
class Opens:
    """What a worker opens.

    Attributes:
        project: The project.
        hot_bytes: How many bytes of what is read again it keeps in memory.
    """

    project: Project
    hot_bytes: int


def workers_of(project: Project) -> WorkerProcesses | None:
    """Returns a project's workers, of which none is started yet; None if it has none.

    What a process may keep in memory is divided among them.
    """
    if project.most_workers == 0:
        return None
    hot = process_budget().hot_bytes if project.hot_bytes is None else project.hot_bytes
    return WorkerProcesses(WorkerSetup(project.most_workers, _MODULE, Opens(project, hot // project.most_workers)))


def main(socket: int) -> None:
    """Computes until the process that steps hangs up.

    Args:
        socket: The number of the socket to it.
    """
    # Not loaded by who steps, who imports this module for `workers_of`.
    from multiprocessing.connection import Connection

    from mz_dagster.compute.step.worker import Worker, serve

    connection = Connection(socket)
    number, opens = connection.recv()
    project: Project = opens.project
    limit_memory(project.process_memory)
    catalog = Catalog.open_made(project.catalog_url)
    if catalog is None:
        return  # it was removed meanwhile
    with catalog:
        local = LocalShards(project.shard_place(), catalog, project.inlining, opens.hot_bytes, project.decoded_files())
        serve(connection, Worker(catalog, local, number))
