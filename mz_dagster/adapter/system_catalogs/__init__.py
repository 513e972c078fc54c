"""`pg_catalog` and `information_schema`: what PostgreSQL's clients ask about, as relations that any query reads.

Where they live. A relation here is one of the catalog's own (`adapter/introspection.py`): a name that resolves to a
`Get` of an id outside the catalog's sequence. When a query is planned, the `Get` becomes a `Constant` of the rows that
the relation has then (`Peeks.planned`), so everything behind it, both engines included, reads literals and knows
nothing of catalogs. It has no timeline and no history: a view over it is refused.

What they say comes from one place, `Facts`: the objects of the catalog as they are now, and the session's part of it
(temporary objects, the search path, who asks). It is made once for each state of the catalog and session, lazily, and
only when a statement asks (`FactsOnDemand`), as it reads the whole catalog.

    columns       what relations there are: each with PostgreSQL 15's columns, types and object ids
    facts         the objects, their columns, keys, indexes and sequences, each with its object id
    filled        of each relation its rows, one function each: the columns that it names; others have their default
    information   those of `information_schema`
    relations     puts the three together, and says which relations are not answered and why
    of_types, of_functions    the rows of `pg_type` and `pg_proc`
    postgres_functions, postgres_operators    what PostgreSQL has built in of what there is here, as it has it
    lookups       what functions ask: `pg_get_indexdef(x)`, `x::regclass::text` (`sql/catalog_calls.py`)

Object ids are made of the catalog's own, which are never reused: an object has the 1,024 ids from
`FIRST_ID + 1024 * number` on, the first its own, the others those of the indexes of its keys and of the sequences of
its columns. What PostgreSQL has built in has the id that it has there.

A relation about something that there is none of here (triggers, policies) has no rows. One about
something that there is and is not told (aggregates, statistics) is an error, never an empty answer.
"""

from __future__ import annotations

from mz_dagster.adapter.system_catalogs.facts import BuiltIn, Facts, FactsOnDemand
from mz_dagster.adapter.system_catalogs.lookups import made
from mz_dagster.adapter.system_catalogs.relations import SYSTEM_RELATIONS, SystemRelation, refused

__all__ = ["SYSTEM_RELATIONS", "BuiltIn", "Facts", "FactsOnDemand", "SystemRelation", "made", "refused"]
