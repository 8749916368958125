"""
Here-documents taken out of a command.
"""

from guardrails.core.commands.grammar.heredocs import without_bodies
from tests.tables import table


@table(
    ("text", "kept", "bodies"),
    [
        ("cat <<'E'\na\nb\nE\nls", "cat <<'E'\nE\nls", {6: "a\nb"}),
        ("cat <<-E > f\n\ta\n\tE", "cat <<-E > f\n\tE", {7: "\ta"}),
        ("a <<X\n1\nX\nb <<Y\n2\nY", "a <<X\nX\nb <<Y\nY", {4: "1", 12: "2"}),
        ("é <<X\n1\nX", "é <<X\nX", {5: "1"}),
        ("cat <<E\n$(rm)\nE", "cat <<E\n$(rm)\nE", {}),
        ("cat <<E\n`rm`\nE", "cat <<E\n`rm`\nE", {}),
        ("cat <<'E'\n$(a) `b` ${c}\nE", "cat <<'E'\nE", {6: "$(a) `b` ${c}"}),
        ('cat <<"E"\n`b`\nE', 'cat <<"E"\nE', {6: "`b`"}),
        ("cat <<\\E\n`b`\nE", "cat <<\\E\nE", {6: "`b`"}),
        ("cat <<'a'b\n1\nab\nls\na", "cat <<'a'b\n1\nab\nls\na", {}),
        ("cat <<'E'\r\n1\nE\r\nls\nE", "cat <<'E'\r\n1\nE\r\nls\nE", {}),
        ("cat <<E\nno end", "cat <<E\nno end", {}),
        ("cat <<< E\nls", "cat <<< E\nls", {}),
        ("ls", "ls", {}),
    ],
)
def test_what_holds_no_substitution_is_taken_out(text: str, kept: str, bodies: dict[int, str]) -> None:
    assert without_bodies(text) == (kept, bodies)
