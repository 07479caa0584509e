"""The ResourceQuota controller: the status of a quota follows what exists."""
