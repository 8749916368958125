"""
What a process that is started for a model sees of the environment.
"""

from guardrails.processes.environment import LISTED, OF_NETWORK, harmless, listed


def test_harmless_variables_are_those_not_named_like_secrets() -> None:
    given = dict.fromkeys(["PATH", "HOME", "GITHUB_TOKEN", "db_password", "DATABASE_URL", "AWS_SECRET_ACCESS_KEY"], "x")
    assert sorted(harmless(given)) == ["HOME", "PATH"]


def test_a_confined_process_sees_the_names_of_a_list_and_of_the_network_only_if_it_may_use_it() -> None:
    given = dict.fromkeys(
        ["PATH", "LC_ALL", "VIRTUAL_ENV", "OPENAI_API_KEY", "AWS_PROFILE", "MY_PLAIN", "LC_MY_KEY", "http_proxy"], "x"
    )
    assert sorted(listed(given)) == ["LC_ALL", "PATH", "VIRTUAL_ENV"]
    assert sorted(listed(given, network=True)) == ["LC_ALL", "PATH", "VIRTUAL_ENV", "http_proxy"]
    assert listed({"HTTPS_PROXY": "http://me:secret@proxy:3128"}, network=True) == {}


def test_no_name_of_the_lists_is_that_of_a_secret_but_for_addresses() -> None:
    assert set(harmless(dict.fromkeys(LISTED, ""))) == LISTED
    assert {name for name in OF_NETWORK if not name.endswith("_URL")} <= set(harmless(dict.fromkeys(OF_NETWORK, "")))
