"""PostgreSQL's wire protocol, version 3, over sessions: what psql and drivers of every language connect to.

    server       listens on loopback, or with TLS elsewhere; a session for each connection
    turns        who is served when: clients one after the other, and who takes long by a thread of its own
    protocol     what is read past, and who has hung up
    host         what a connection asks of the server
    backend      one connection: startup, SCRAM-SHA-256, simple and extended queries, errors with their positions
    startup_settings    the settings that a client asks for as it connects
    pipelines    which statements are one transaction though nobody said BEGIN
    idle         ends clients that have been idle for too long
    copying      COPY's formats: text, CSV and binary
    binary_columns    what is sent in binary, column by column
    statements   a client's text as ours, `$1` is `?`; prepared statements and portals
    descriptions        what parameters and columns are said to be
    driver_questions    what drivers ask of their own accord, in words that a query has here
    answers      what is sent of results and errors
    row_columns    rows in columns as they are sent, column by column
    types        object ids of types, and cells as text and in binary, as PostgreSQL's
    errors       what clients are told of connections, prepared statements and portals
    credentials  who may connect: a password in a file that only its owner can read

Messages are taken apart and put together by `pygwire`, and SCRAM is `scramp`'s. Invariant: nobody who has not
authenticated reaches a session, and no error of a client ends more than its own connection.
"""

from __future__ import annotations

from mz_dagster.wire.credentials import Credentials
from mz_dagster.wire.server import Server

__all__ = ["Credentials", "Server"]
