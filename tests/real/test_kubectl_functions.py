"""A slice of kubectl's own test/cmd on our server and controllers; `make suites` runs all of it.

The slice takes a minute and goes through most kinds of commands. What upstream's functions expect is not repeated here.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.suites import kubectl_commands, modules

SLICE = {
    *("run_RESTMapper_evaluation_tests", "run_assert_categories_tests", "run_assert_short_name_tests"),
    *("run_authorization_tests", "run_certificates_tests", "run_crd_deletion_recreation_tests"),
    *("run_create_job_tests", "run_create_secret_tests", "run_deprecated_api_tests", "run_exec_credentials_tests"),
    *("run_explain_crd_with_additional_properties_tests", "run_kubectl_auth_whoami_tests"),
    *("run_kubectl_create_error_tests", "run_kubectl_create_filter_tests", "run_kubectl_create_validate_tests"),
    *("run_kubectl_diff_same_names", "run_kubectl_exec_pod_tests", "run_kubectl_explain_tests"),
    *("run_kubectl_run_tests", "run_kubectl_version_tests", "run_lists_tests", "run_nodes_tests"),
    *("run_resource_aliasing_tests", "run_retrieve_multiple_tests", "run_role_tests", "run_swagger_tests"),
}


@pytest.mark.spec("S-40", "S-41")
def test_kubectls_own_functions_pass(binaries: Path, tmp_path: Path) -> None:
    try:
        results = kubectl_commands.run(tmp_path, only=SLICE)
    except modules.Unavailable as reason:
        pytest.skip(str(reason))
    failed = [f"{result.name}\n{result.tail()}" for result in results if not result.passed]
    assert not failed, "\n".join(failed)
    assert {result.name for result in results} == SLICE
