"""Text, and what is like it: `varchar(n)`, `char(n)`, `uuid`, `bytea`."""
