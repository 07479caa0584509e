"""Metrics, health, events, logs, profiles: what an operator reports about itself."""
