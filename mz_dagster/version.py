"""The version, read by the build and by Dagster's library registry."""

__version__ = "0.1.0"
