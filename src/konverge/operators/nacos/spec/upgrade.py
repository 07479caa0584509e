"""What has to be given before the servers of a `Nacos` go to another version."""

from __future__ import annotations

from typing import Annotated

from konverge.objects import MaxLength, Model, Pattern

Duration = Annotated[str, Pattern(r"^([0-9]+[hms])*$"), MaxLength(32)]
"""As Go writes them: 24h, 1h30m."""


class UpgradeOptions(Model):
    """When the servers go to another version of Nacos."""

    paused: bool = False
    """Whether upgrades wait: none begins, and one that is under way replaces no further server."""
    require_backup_within: Duration = ""
    """A time such as 24h: an upgrade begins only when a NacosBackup of this Nacos was completed within it. Empty: no
    backup is asked for."""
