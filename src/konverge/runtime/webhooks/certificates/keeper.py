"""The life of the shared Secret: made by whichever replica is first, renewed by whichever looks first.

Every write is guarded by what was read, so two replicas that do the same at once end with one result: the other one
reads again and finds nothing to do. A replica whose API server is away goes on with what it has: a renewal is due long
before an end.
"""

from __future__ import annotations

import asyncio
import base64
import logging
from dataclasses import dataclass
from datetime import datetime

from konverge import clock
from konverge.client import AlreadyExists, Client, ClientError, Conflict, NotFound
from konverge.objects.kinds.core_v1 import Secret
from konverge.objects.meta import ObjectMeta
from konverge.runtime.webhooks.certificates.material import (
    Lifetimes,
    Material,
    also_trusting,
    brought_up_to_date,
    is_trusted,
    is_valid,
    may_promote,
    promoted,
)
from konverge.runtime.webhooks.certificates.publishing import Publisher
from konverge.wire.certificate import ShownCertificate
from konverge.wire.errors import WireError

LABEL = "konverge.dev/webhook-certificate"
"""On our Secret: one without it is of another owner."""
TRIES = 10
"""Of one look, while other replicas write at the same time."""
FIRST_RETRY, JITTER = 1.0, 0.2

_log = logging.getLogger("konverge.webhooks")


class NotOurSecret(Exception):
    """A Secret of that name exists and belongs to another owner."""


class _Changed(Exception):
    """Another replica has written meanwhile: read again."""


_EXPECTED = (ClientError, WireError, OSError, TimeoutError, NotOurSecret)
"""These say enough by their text; others are logged with a traceback."""


@dataclass(frozen=True, slots=True)
class _Read:
    """The Secret as it was read, and what is in it."""

    secret: Secret | None
    material: Material | None
    """None when there is none, or it cannot be used."""


class Keeper:
    """One replica's view of the shared certificates."""

    def __init__(
        self,
        client: Client,
        publisher: Publisher,
        *,
        owner: str,
        namespace: str,
        secret: str,
        hosts: tuple[str, ...],
        lifetimes: Lifetimes,
    ) -> None:
        self._client = client
        self._publisher = publisher
        self._owner = owner
        self._namespace, self._secret = namespace, secret
        self._hosts = hosts
        self._lifetimes = lifetimes
        self._last: Material | None = None
        self.shown: ShownCertificate | None = None
        """What the server shows; there is one after the first look."""
        self.problem = "the certificate is not issued yet"
        """What is wrong with it; empty when it can be served."""

    async def first(self) -> ShownCertificate:
        """Look until there is a certificate that the API server trusts."""
        delay = FIRST_RETRY
        while not await self.attempt() or self.shown is None:
            await asyncio.sleep(delay * (1 + JITTER * clock.rng().random()))
            delay = min(delay * 2, self._lifetimes.look_every)
        return self.shown

    async def run(self) -> None:
        """Until cancelled: look from time to time, replicas at different times."""
        while True:
            await asyncio.sleep(self._lifetimes.look_every * (1 + JITTER * clock.rng().random()))
            await self.attempt()

    async def attempt(self) -> bool:
        """One look; what goes wrong is logged, and the next look is another chance."""
        try:
            await self.look()
        except Exception as error:  # whatever it is: a keeper that ends is noticed when the certificate does
            problem = f"the certificate cannot be kept up to date: {error}"
            _log.warning("%s", problem, exc_info=None if isinstance(error, _EXPECTED) else error)
            # A server that is away calls no webhooks; one that is there still trusts what we show, until it ends.
            if self.shown is None or not is_valid(self.shown.certificate, clock.utc_now()):
                self.problem = problem
            return False
        self.problem = ""
        return True

    async def look(self) -> None:
        """Bring the Secret, the caBundles and what is shown up to date."""
        for _ in range(TRIES):
            try:
                material = await self._up_to_date()
                self._show(material)
                if await self._publisher.publish(self._bundle) != material.bundle:
                    continue
                now = clock.utc_now()
                if not may_promote(material, self._lifetimes, now):
                    return
                read = await self._read()
                if read.material == material:
                    await self._store(read, promoted(material, self._hosts, self._lifetimes, now))
                # What was stored is shown and published by the next pass.
            except (Conflict, AlreadyExists, _Changed):
                continue
        raise TimeoutError(f"the Secret {self._namespace}/{self._secret} was changed by others {TRIES} times in a row")

    async def _up_to_date(self) -> Material:
        read, now = await self._read(), clock.utc_now()
        if read.material is not None:
            wanted = brought_up_to_date(read.material, self._hosts, self._lifetimes, now)
        else:
            wanted = await self._replacement(now)
        if wanted is not read.material:
            await self._store(read, wanted)
        self._last = wanted
        return wanted

    async def _replacement(self, now: datetime) -> Material:
        """For a Secret that is not there or broken: what was in it, for replicas still show that. An authority that is
        published nowhere was dropped on purpose, and does not come back."""
        published = await self._publisher.published()
        last = self._last if self._last is not None and is_trusted(self._last, published) else None
        wanted = brought_up_to_date(last, self._hosts, self._lifetimes, now)
        return wanted if last is not None else also_trusting(wanted, published, now)

    async def _read(self) -> _Read:
        try:
            secret = await self._client.get(Secret, self._secret, self._namespace)
        except NotFound:
            return _Read(None, None)
        if LABEL not in secret.metadata.labels and secret.data:
            raise NotOurSecret(
                f"the Secret {self._namespace}/{self._secret} is not ours (it has no label {LABEL}): remove it, or "
                "give the webhooks another secret="
            )
        return _Read(secret, self._material(secret))

    def _material(self, secret: Secret) -> Material | None:
        if not secret.data:
            return None
        try:
            return Material.read({name: base64.b64decode(value) for name, value in secret.data.items()})
        except ValueError as error:
            _log.warning(
                "the Secret %s/%s cannot be used, it is written again: %s", self._namespace, self._secret, error
            )
            return None

    async def _store(self, read: _Read, material: Material) -> None:
        data = {name: base64.b64encode(value).decode() for name, value in material.data().items()}
        if read.secret is None:
            meta = ObjectMeta(name=self._secret, namespace=self._namespace, labels={LABEL: self._owner})
            await self._client.create(Secret(metadata=meta, type="Opaque", data=data))
            _log.info("certificates for webhooks were issued: Secret %s/%s", self._namespace, self._secret)
            return
        read.secret.metadata.labels[LABEL] = self._owner
        read.secret.data = data
        await self._client.replace(read.secret)
        _log.info("certificates for webhooks were renewed: Secret %s/%s", self._namespace, self._secret)

    async def _bundle(self) -> bytes:
        """As the Secret has it now. Raises _Changed when it was removed or broken: the next pass repairs it."""
        read = await self._read()
        if read.material is None:
            raise _Changed
        return read.material.bundle

    def _show(self, material: Material) -> None:
        if self.shown is None:
            self.shown = ShownCertificate(material.certificate, material.certificate_key)
        else:
            self.shown.use(material.certificate, material.certificate_key)
