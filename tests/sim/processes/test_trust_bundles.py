"""Trust bundles as files of process pods."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

import pytest

from konverge.objects.codec import from_dict
from konverge.objects.kinds.certificates_v1 import ClusterTrustBundle
from konverge.objects.kinds.core_v1 import Pod, Volume
from konverge.sim.processes.disk import File, MountError
from konverge.sim.processes.environment import Self
from konverge.sim.processes.volumes import files

pytestmark = pytest.mark.spec("S-57")
SIGNER = "test.test/one"


def pem(content: bytes, headers: str = "") -> str:
    body = base64.encodebytes(content).decode()
    return f"-----BEGIN CERTIFICATE-----\n{headers}{body}-----END CERTIFICATE-----\n"


def bundle(name: str, text: str, signer: str = "", **labels: str) -> ClusterTrustBundle:
    spec = {"trustBundle": text} | ({"signerName": signer} if signer else {})
    return from_dict(ClusterTrustBundle, {"metadata": {"name": name, "labels": labels}, "spec": spec})


A, B, C = (letter * 100 for letter in (b"a", b"b", b"c"))
BUNDLES = [
    bundle("alone", f"of mine\n{pem(C)}\n# the end"),
    bundle("one.1", pem(A, "Name: a\nOther: b\n") + pem(B), SIGNER, alive="yes"),
    bundle("one.2", pem(B) + pem(C), SIGNER, alive="no"),
    bundle("two.1", pem(b"other"), "test.test/two", alive="yes"),
]


class Known:
    async def config_map(self, name: str) -> None: ...

    async def config_map_data(self, name: str) -> None: ...

    async def secret(self, name: str) -> None: ...

    async def token(self, audience: str, seconds: int) -> bytes:
        return b""

    async def trust_bundles(self) -> Sequence[ClusterTrustBundle]:
        return BUNDLES


async def projected(mode: int | None = None, **part: Any) -> File:
    sources = [{"clusterTrustBundle": {"path": "ca.pem", **part}}]
    volume = from_dict(Volume, {"name": "v", "projected": {"sources": sources, "defaultMode": mode}})
    made = await files(volume, Self(from_dict(Pod, {}), "", ""), Known())
    assert list(made) == ["ca.pem"]
    return made["ca.pem"]


def certificates(file: File) -> list[bytes]:
    return sorted(
        base64.b64decode("".join(part.split("-----")[0].split()))
        for part in file.data.decode().split("-----BEGIN CERTIFICATE-----")[1:]
    )


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ({"name": "alone"}, [C]),
        ({"name": "none", "optional": True}, []),
        ({"signerName": SIGNER, "labelSelector": {}}, [A, B, C]),
        ({"signerName": SIGNER, "labelSelector": {"matchLabels": {"alive": "yes"}}}, [A, B]),
        ({"signerName": SIGNER, "optional": True}, []),
        ({"signerName": SIGNER, "labelSelector": {"matchLabels": {"alive": "maybe"}}, "optional": True}, []),
    ],
)
async def test_certificates_are_chosen_and_each_comes_once(part: Any, expected: list[bytes]) -> None:
    file = await projected(**part)
    assert certificates(file) == expected
    assert file.mode == 0o644


async def test_a_file_has_nothing_but_certificates_in_lines_of_64() -> None:
    text = (await projected(0o400, name="alone")).data.decode()
    body = base64.b64encode(C).decode()
    wrapped = "\n".join(body[start : start + 64] for start in range(0, len(body), 64))
    assert text == f"-----BEGIN CERTIFICATE-----\n{wrapped}\n-----END CERTIFICATE-----\n"
    assert (await projected(0o400, name="alone")).mode == 0o400


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ({"name": "none"}, 'while getting ClusterTrustBundle: clustertrustbundle.certificates.k8s.io "none" not found'),
        ({"signerName": SIGNER}, "combination of signerName and labelSelector matched zero ClusterTrustBundles"),
    ],
)
async def test_what_is_missing_is_told_as_a_kubelet_does(part: Any, message: str) -> None:
    with pytest.raises(MountError) as error:
        await projected(**part)
    assert str(error.value) == message
