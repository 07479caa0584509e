"""What is installed is what was meant: pins with hashes, no addresses, a list of parts, known vulnerabilities."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tools import audit, sbom
from tools.locked import locked

ROOT = Path(__file__).parents[2]
LOCKS = [ROOT / "constraints.txt", ROOT / "deploy" / "constraints.txt"]


@pytest.mark.spec("T-11")
@pytest.mark.parametrize("path", LOCKS, ids=lambda path: path.parent.name)
def test_every_pin_has_hashes_and_no_address(path: Path) -> None:
    packages = locked(path)
    assert {"msgspec", "httptools", "pyyaml", "cryptography"} <= {package.name for package in packages}
    assert not re.search(r"https?:|index-url|find-links", path.read_text(encoding="utf-8"))


@pytest.mark.spec("T-11")
def test_the_image_has_the_versions_that_the_tests_use() -> None:
    tested, shipped = ({name: version for name, version, _ in locked(path)} for path in LOCKS)
    assert shipped.items() <= tested.items()
    assert "pytest" not in shipped
    [(_, builder, _)] = locked(ROOT / "deploy" / "build.txt")
    assert tested["setuptools"] == builder


@pytest.mark.spec("T-11")
def test_a_pin_without_a_hash_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "constraints.txt"
    path.write_text(f"a==1 \\\n    --hash=sha256:{'0' * 64}\nb==2 ; sys_platform == 'win32'\n")
    with pytest.raises(ValueError, match="b has no hash"):
        locked(path)


@pytest.mark.spec("T-11")
def test_the_list_of_parts(tmp_path: Path) -> None:
    sbom.main(str(LOCKS[1]), str(tmp_path / "build" / "sbom.json"))
    document = json.loads((tmp_path / "build" / "sbom.json").read_text())
    packages = locked(LOCKS[1])
    assert (document["bomFormat"], document["specVersion"]) == ("CycloneDX", "1.5")
    assert document["metadata"]["component"]["name"] == "konverge"
    assert [part["purl"] for part in document["components"]] == [package.purl for package in packages]
    assert document["dependencies"][0]["dependsOn"] == [package.purl for package in packages]
    hashes = [file["hashes"][0]["content"] for file in document["components"][0]["components"]]
    assert hashes == list(packages[0].hashes)


@contextmanager
def database(answer: Any, asked: list[Any]) -> Iterator[str]:
    """A database of vulnerabilities with one answer."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()
            self.wfile.write(json.dumps(answer).encode())

        def log_message(self, *_: Any) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def pins(tmp_path: Path) -> str:
    path = tmp_path / "constraints.txt"
    digest = f"    --hash=sha256:{'0' * 64}\n"
    path.write_text(f"Good_One==1.0 \\\n{digest}bad==2.0 \\\n{digest}")
    return str(path)


@pytest.mark.spec("T-11")
def test_a_known_vulnerability_fails(
    pins: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    with database({"results": [{}, {"vulns": [{"id": "GHSA-1"}, {"id": "GHSA-2"}]}]}, asked) as url:
        assert audit.main(pins, url) == 1
        assert "bad 2.0: GHSA-1" in capsys.readouterr().out
        monkeypatch.setattr(audit, "ACCEPTED", {"GHSA-1": "not reachable", "GHSA-2": "not reachable"})
        assert audit.main(pins, url) == 0
    purls = [query["package"]["purl"] for query in asked[0]["queries"]]
    assert purls == ["pkg:pypi/good-one@1.0", "pkg:pypi/bad@2.0"]


@pytest.mark.spec("T-11")
def test_a_database_that_cannot_be_reached_is_said(pins: str, capsys: pytest.CaptureFixture[str]) -> None:
    with database({}, []) as url:
        pass
    assert audit.main(pins, url) == 0
    assert capsys.readouterr().out.startswith("not audited: ")
