"""The story of an object: who wrote what, what happened, what was reconciled and why; of the past, and as it comes.

The embedded API server can show every change of its history. Of any other server the story is what the objects say of
themselves (managed fields, events) and what this console has watched while a page looked.
"""
