"""Simulation: a virtual clock, and (in time) nodes, volumes and faults on it."""
