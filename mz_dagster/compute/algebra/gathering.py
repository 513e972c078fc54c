"""How large what `array_agg` and `string_agg` gather may become, as in PostgreSQL, and the errors of what is larger."""

#: The most elements of an array and bytes of a text.
MOST_ELEMENTS = 134_217_727
MOST_BYTES = 1_073_741_823

TOO_MANY_ELEMENTS = f"54000 array size exceeds the maximum allowed ({MOST_ELEMENTS})"
TOO_MANY_BYTES = f"54000 string_agg result exceeds the maximum allowed ({MOST_BYTES} bytes)"
