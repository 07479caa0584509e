"""The garbage collector: background, foreground and orphan deletion by owner references."""
