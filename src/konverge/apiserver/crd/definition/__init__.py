"""CustomResourceDefinition as a kind: its validation, its names, its end."""
