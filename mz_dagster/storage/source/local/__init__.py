"""Files of a source read in this process, without Spark: for what is too little to have a JVM started for it.

The same records as `source.record` has Spark make, bit for bit: both read the same formats by the same rules, which the
modules for Spark state, and a conformance suite holds one against the other.

Files: `cells` the seam, rows of undecoded cells with their places; `json_lines` (many at once by `json_columns`),
`csv_lines` and `parquet_rows` yield them; `decode` and `convert` type them; `record` assembles the records. Each is
named as its counterpart.

What is decoded are the bytes whose hash was compared. Memory: one portion of cells and records, and the bytes of a
file; of one of lines, or a large one of Parquet, those of the portion only.
"""
