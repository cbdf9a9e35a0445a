"""Benchmarks: programs that measure and print JSON; no timed tests."""
