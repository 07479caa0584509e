"""ResourceQuota: how much of what a namespace may have."""
