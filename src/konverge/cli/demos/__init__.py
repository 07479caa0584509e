"""The demonstrations of `konverge demo`."""
