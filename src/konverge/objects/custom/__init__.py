"""Custom resources as classes, and their definitions. Users import from `konverge.objects`."""
