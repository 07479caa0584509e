"""Metrics, health, events, logs, profiles: what an operator tells about itself."""
