"""The story of every reconcile: why it ran, what it read and wrote, and how it ended. `manager.story` has the latest.

While a reconcile runs, references are noted (`entry.py`) and kept in a bounded ring (`ring.py`); text, differences and
JSON are made when they are asked for (`render.py`, `story.py`, `page.py`).
"""
