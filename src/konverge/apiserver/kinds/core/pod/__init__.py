"""Pod and its parts; pod templates use the same."""
