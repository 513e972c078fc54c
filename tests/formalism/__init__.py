"""The laws of the formalism, each as a property that bears its name.

Every law is checked over total and over partial orders: the naturals, pairs, pairs of pairs, and a
lattice that is not distributive, which keeps out proofs that only work on products of numbers. The
numbers in the docstrings are those of the seeds' notes.
"""
