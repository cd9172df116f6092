"""Benchmarks: ours, the bare floor, and their ratio from one interleaved run."""
