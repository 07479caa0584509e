"""The `konverge` command."""
