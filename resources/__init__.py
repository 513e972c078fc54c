"""The demo project's resources: which project, and the engine that opens it.

Spark, catalog and retention are settings of `mz.toml` in the folder above.
"""

from pathlib import Path

from mz_dagster import MzResource, Project

PROJECT = Project.load(Path(__file__).resolve().parents[1])

RESOURCES = {"mz": MzResource(project_dir=str(PROJECT.root))}
