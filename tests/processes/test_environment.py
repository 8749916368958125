"""
What a process that is started for a model sees of the environment.
"""

from guardrails.processes.environment import harmless


def test_harmless_variables_are_those_not_named_like_secrets() -> None:
    given = dict.fromkeys(["PATH", "HOME", "GITHUB_TOKEN", "db_password", "DATABASE_URL", "AWS_SECRET_ACCESS_KEY"], "x")
    assert sorted(harmless(given)) == ["HOME", "PATH"]
