"""Statements, each carried out by the function of its file.

Owns what becomes of a statement once it is parsed: `statements` is the one table that says, for each type of statement,
which function carries it out and what it does to a transaction block. The session looks there, sees to what is the same
for all (privileges, parameters, the block, what is bound anew because it has gone meanwhile), and calls it.

A function takes the `Context` of its session, the statement and a value for each of its parameters, and returns a
`Result`. It reads from top to bottom as the stages that the statement has, of these, in this order:

1. *bind*: what its names denote (`context.names`), which types it has, and what it is refused for with a position;
2. *check access*: who may run it was asked before it began; what it may read or write is asked of each name as that is
   resolved (`names`, `access`), or of what it writes (`Writes.table`);
3. *choose a timestamp*: `timestamps`, through `peeks`; of the block that is open, if one is;
4. *execute*: a peek, an append, a change of the catalog, of the session's variables or of its block;
5. *answer*: the tag that PostgreSQL gives, with columns and rows.

What several statements need of a stage is no statement's file: `written` decides and appends what INSERT, UPDATE,
DELETE, TRUNCATE and COPY say, `defined` has what CREATE, ALTER and DROP share, and `peeks`, `dml`, `constraints`,
`conflicts` and `subscriptions` are beside this folder.

To add a statement: its class and parser in `sql/`, its function in a file here, and its line in `statements`. A test
holds that every type of statement has a line, and that its function is defined in a file of this folder.

It opens no connection, parses nothing, and keeps no state: that is the session's, its block's and the engine's.
"""
