"""The story of the demo is that of the exercise it comes from: the same facts in the same order."""

from __future__ import annotations

import json

import pytest

from konverge.cli.main import main

CHINESE = """\
=== 测试练习 3: 更新与同步逻辑 ===
初始状态:
  Generation: 1
  ObservedGeneration: 1
  Deployment Replicas: 2
  Deployment Image: nginx:1.20

修改 Spec:
  新的 Replicas: 5
  新的 Image: nginx:1.21
  新的 Port: 8080

触发协调:
[INFO] test: Reconcile called [webapp test-webapp phase Running]
[INFO] test: 处理 Running 状态 [webapp test-webapp]
[INFO] test: 检测到 Spec 变更，开始同步 [generation 2 observedGeneration 1]
[INFO] test: Replicas 变更 [old 2 new 5]
[INFO] test: Image 变更 [old nginx:1.20 new nginx:1.21]
[INFO] test: 同步 Deployment [name test-webapp]
[INFO] test: Service Port 变更 [old 80 new 8080]
[INFO] test: 同步 Service [name test-webapp]
[INFO] test: 资源同步完成 []
  协调结果: Requeue=true, RequeueAfter=30s

同步后状态:
  ObservedGeneration: 2 (应该是 2)
  Deployment Replicas: 5 (应该是 5)
  Deployment Image: nginx:1.21 (应该是 nginx:1.21)
  Service Port: 8080 (应该是 8080)

✓ 所有资源已正确同步

再次协调（无 Spec 变更）:
[INFO] test: Reconcile called [webapp test-webapp phase Running]
[INFO] test: 处理 Running 状态 [webapp test-webapp]
  应该跳过同步，只进行健康检查
  RequeueAfter: 30s
"""


@pytest.mark.spec("A-11")
def test_in_chinese_it_is_the_expected_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "webapp", "--lang", "zh"]) == 0
    assert capsys.readouterr().out == CHINESE


@pytest.mark.spec("A-11")
def test_in_english_it_has_the_same_lines(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "webapp"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(CHINESE.splitlines())
    assert lines[0] == "=== WebApp: update and sync ==="
    assert "  result: Requeue=true, RequeueAfter=30s" in lines
    assert "✓ all resources are synced" in lines
    assert all(line.isascii() for line in lines if not line.startswith("✓"))


@pytest.mark.spec("A-11")
def test_for_machines_there_are_values(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "webapp", "--output", "json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert {"kind": "fact", "text": "Service port: 8080 (should be 8080)", "values": [8080, 8080]} in facts
    assert [fact["values"] for fact in facts if fact["kind"] == "log" and "changes" in fact["text"]] == [
        ["Replicas", 2, 5],
        ["Image", "nginx:1.20", "nginx:1.21"],
        ["Service Port", 80, 8080],
    ]
