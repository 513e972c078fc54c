"""jsonb: its values, operators and functions, and what becomes one."""
