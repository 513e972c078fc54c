"""How large what `array_agg` and `string_agg` gather may become: as in PostgreSQL."""

#: The most elements of an array and bytes of a text.
MOST_ELEMENTS = 134_217_727
MOST_BYTES = 1_073_741_823
