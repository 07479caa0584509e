"""Work queues: FIFO without duplicates, delays, rate limits, priority with ageing, fairness between tenants."""

from konverge.token_bucket import TokenBucket
from konverge.workqueue.fair import PATIENCE, FairQueue
from konverge.workqueue.gated import GatedQueue
from konverge.workqueue.queue import MAX_REASONS, Item, QueueMetrics, ShutDown, WorkQueue
from konverge.workqueue.ratelimit import Backoff, RateLimiter

__all__ = [
    "MAX_REASONS",
    "PATIENCE",
    "Backoff",
    "FairQueue",
    "GatedQueue",
    "Item",
    "QueueMetrics",
    "RateLimiter",
    "ShutDown",
    "TokenBucket",
    "WorkQueue",
]
