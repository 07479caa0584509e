"""Go where the API shows it: how it reads JSON, YAML, times and addresses, and what its error messages say."""
