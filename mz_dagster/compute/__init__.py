"""Compute: plans rendered on Spark, and the step that advances a graph of collections.

Owns how an operator turns updates of its inputs into updates of its output, at the exact times. The invariant: for
every collection and every time at which it is readable, its content is its plan's result over its inputs as
of that time, error part included; an output's upper never passes an input's (constraint W), and no input's history is
needed where it is forgotten (constraint R).

In the order of import:

- `frame`: names and types of update frames on Spark.
- `scalar/`: scalar expressions as total Spark columns, a value or an error.
- `constant`, `linear`, `negate`, `union`, `repeat`, `unnest`, `delta_join`: one operator each; `consolidate`.
- `few_operators`: the walk over plans of few updates, in this process: `few_plans` in an interval, with Spark for
  lookups in much; `few_contents` from the beginning, for what is hydrated or asked. `few_linear`, `few_join`,
  `few_sums`, `few_staged` and `few_temporal` are what it walks over; `cells`: values in Arrow's tables and in Python.
- `state`: what a keyed operator reads of its own collection; `lookup_keys`, `step_reads`, `common_lookups`,
  `histories`: lookups that read what they touch, and once for all that look the same up; `sizes`: how many rows a plan
  can make.
- `accumulate`: counts and sums per key; `temporal`: temporal filters, and `due`: when the next row changes by itself.
- `staged`: tournaments of recomputed groups, by `versions` of their buckets; `top_rows`, `extremes`, `gathered` and
  `windowed` are what a stage does with a bucket; `top_stages`: all stages of first rows at once; `winners`: one row of
  each group of an input that only grows.
- `render`: a physical plan's updates over an interval, or its content at one time.
- `ingest`: a source's updates.
- `graph`, `schedule`, `step`, `step_report`: all collections of a timeline, advanced together and sealed together.
- `peek`, `rows_frame`: a plan at one time, as rows; a collection at one time, as a frame.
- `discrepancy`: a collection against a plan, at one time.
- `warm_spark`: Spark, opened when there is work for it.

*What a step costs* where much is stored is reading it for joins: of TPC-H's views at scale factor 1, 3,000 changed
orders, the executors take 9 s of processor time, half of it for two scans of lineitem and three of orders.

- Lookups in the same collection by the same columns are one, for the keys of all that ask: before, lineitem was scanned
  four times in a step, and at first once for each join.
- Only the rows of the keys go on to what a join's input computes: before, it computed that of all rows.
- Half a million changes are few. At scale factor 10 a step has 150,000; taken for many, as more than 100,000 were, they
  were shuffled together with all that they were looked up in, or it was scanned for each join anew: reading the sources
  took 158 s and the step 206 s, where it is 45 and 111 s.
- Keys are looked for in what the groups and joins that have them are made of, so lookups for what a view keeps join
  those of what changed: one scan of lineitem less in q21, 22 s at scale factor 10.
- What q17 looks up by part in lineitem, as no key of it lies together, is kept (`plan.lowering.restricted`): of 90 s of
  the executors' processor time in a step at scale factor 10, that scan took 27.
- Of the four collections that may be computed at a time, two waited for their inputs (`schedule`). With the two changes
  above, and what is fetched being one job, not two or three, the step takes 74 s, or 58 s with keys that lie together.
- With a heap of 8 GB, not 4, 3 % of the JVM's processor time is garbage collection, not 11 %.
- A file costs Spark about 2 ms, and a tenth of a millisecond more for each column: lineitem in 32 files, not 256, is
  read in two thirds of the time. With keys that lie together, pages of 4,096 rows let it read 2 % of them.
- Parquet's vectored reads are off (`storage.spark.config`): on local files, other threads fetched what a task waited
  for. A scan of five of lineitem's columns takes 1.4 s, not 2; one of the pages within 16 ranges 0.5 s, not 0.9.
- Numerics are decoded as integers (`storage.numerics`): the rows of 3,000 keys among 6 million lineitems, with two
  numerics, take 0.8 s of processor time, not 1.4.
- Of no use: to scan with Arrow in this process, which decodes as slowly as Spark does (2.1 s for 15 columns of 6
  million rows); keys as an `IN` of thousands of values (twice the time of a join with them).

*What a small step costs* is planning and compiling, not rows: of the processor time of Spark's JVM in a step of TPC-H's
views at scale factor 1, analysis took 16 %, compilers 15 %, reading Parquet 18 %. With 150 rows changed, on two cores:

- No replanning while a query runs (adaptive execution) where little is new, one task for little that is grouped, no
  lookup in a state that is little itself, and code that does not name the number of its stage: a step of 44 s took 24.
- Columns are selected, not dropped or replaced (`frame`): half of the analysis was of what stood below these.
- The JVM's second compiler called five times later: of 13 to 21 s of its processor time a step, 12 to 14 are left.
- Lambdas over arrays are interpreted, and cut the compiled code around them: q10's tournament took 24 microseconds a
  row, and only looks at the rows that can be among the first twenty now.
- A tournament of first rows is one stage, not a chain, and its buckets are spared where no first row changes
  (`top_stages`): q10's ranked 26,000 rows in 1.3 s of processor time, and ranks 3,700 in 0.3.
- What a step keeps is under a name on the server (`StepReads.shared`): without one, all of it is analyzed with each
  query that it is a part of, where analysis took two of five seconds of a step of q10 alone.
- Keys that are columns of what changed are read in this process: a query less.
- Up to 20,000 updates are joined and summed in this process (`few_plans`), where they were a query to find the keys of
  each lookup and a plan that grew with each. What is left of them is the lookups: a step of q2 alone, with 20 parts
  changed, took 4.3 s and takes 1.1, and one of all views, 3,000 orders changed, 31 s and 17.
- So are first rows and extremes (`few_staged`): with 2,000 rows of 500,000 changed, a step of `max` by group took 2.7 s
  and takes 0.4, or 0.17 where the input only grows; that of all of TPC-H's views 17 s and 13.
- What few rows come to is worked out here, too (`few_linear`), where each map or filter was a query of a tenth of a
  second; and a step opens Spark when it first needs it.
- Joins that leave few of up to 200,000 updates are made here, which Arrow does; what is above sees few rows. A step of
  q8 alone at scale factor 10, 150,000 rows changed, took 7.5 s and takes 5.2. Sums of as many rows are Spark's: in
  Python those of q1 took 8.4 s, on Spark 1.7.
- Keys that lie apart are looked for one by one in the statistics of pages, as a set, which is an object in the compiled
  code. As a disjunction of ranges, 64 of them made a method that the JVM does not compile: 29 s for a scan of 0.7.
- Of no use: Spark's analyzer of a single pass, tried where it can (`singlePassResolver.enabledTentatively`); methods of
  more than 8,000 bytes compiled, too; no propagation of constraints, no checks of what the optimizer makes, no pruning
  of partitions by joins; expressions interpreted instead of compiled, once the code is the same in each step; a name
  for what a tournament is hydrated from (of 3 s of processor time for each of TPC-H's 81 small collections, in a young
  JVM, half is the analyzer's, as before).
- What is left: scans of what is not laid out by the columns that are looked up, and tournaments of many changes.

It does not choose times, poll sources, parse SQL or know names.
"""

from mz_dagster.compute.discrepancy import Discrepancy, Rows, content, discrepancy, negative_multiplicities
from mz_dagster.compute.graph import Graph, MaintainedNode, Node, SourceNode, TableNode
from mz_dagster.compute.peek import CollectionHasErrors, NegativeMultiplicity, cells, peek, peek_here, rows_of
from mz_dagster.compute.rows_frame import rows_frame
from mz_dagster.compute.step import Progress, StepLost, Stepper, quiet
from mz_dagster.compute.step_report import CollectionStep, Outcome, StepReport
from mz_dagster.compute.warm_spark import WarmSpark

__all__ = [
    "CollectionHasErrors",
    "CollectionStep",
    "Discrepancy",
    "Graph",
    "MaintainedNode",
    "NegativeMultiplicity",
    "Node",
    "Outcome",
    "Progress",
    "Rows",
    "SourceNode",
    "StepLost",
    "StepReport",
    "Stepper",
    "TableNode",
    "WarmSpark",
    "cells",
    "content",
    "discrepancy",
    "negative_multiplicities",
    "peek",
    "peek_here",
    "quiet",
    "rows_frame",
    "rows_of",
]
