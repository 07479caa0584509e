"""batch: Job, CronJob."""

from konverge.apiserver.kinds.batch.cronjobs import CRON_JOB
from konverge.apiserver.kinds.batch.jobs import JOB

STRATEGIES = {"Job": JOB, "CronJob": CRON_JOB}
