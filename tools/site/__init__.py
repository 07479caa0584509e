"""The documents as a site: `python -m tools.site FOLDER` (`make docs`)."""
