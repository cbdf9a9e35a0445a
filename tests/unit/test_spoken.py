"""Hints name requests to who asks by HTTP, and commands where only who runs the server can help."""

import pytest

from st_common.server.replies import by_http


@pytest.mark.parametrize(
    ("hint", "said"),
    [
        ("`fairway query list` names all", "`GET /v1/queries` names all"),
        ("did you mean zone", "did you mean zone"),
        ("see fairway query list", "see GET /v1/queries"),
        (
            "such as parks@7; `fairway layer list` names them",
            "such as parks@7; `GET /v1/layers` names them",
        ),
        (
            "`fairway run ships` first",
            "its engine has not read fixes yet: `GET /v1/status` says how ships is",
        ),
        (
            "`fairway streams reset ships` again",
            "`fairway streams reset ships` again",
        ),
        ("ask in a terminal, `fairway shell`", "ask in a terminal, `fairway shell`"),
    ],
)
def test_a_hint_names_the_request_that_does_what_a_command_does(hint, said):
    assert by_http(hint) == said
