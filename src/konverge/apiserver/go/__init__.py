"""Go's standard library where the API shows it: how it reads JSON, YAML, times and addresses, and its error messages."""
