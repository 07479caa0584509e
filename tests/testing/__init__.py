"""The pytest plugin and its helpers."""
