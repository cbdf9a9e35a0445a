"""The files of the page as a browser asks for them: with a policy, without a token, and nothing else of the disk."""

import pytest

from st_common.config.home import Home
from st_common.server.app import ENDPOINTS
from st_common.server.installation import Installation
from st_common.server.page import files
from tests.kit.server_http import served

pytestmark = pytest.mark.spec("P10")


@pytest.fixture
def place(tmp_path):
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "streams.toml").write_text("")
    (tmp_path / "secret.txt").write_text("secret")
    return Installation(home=Home(tmp_path / "home"), conf=conf)


@pytest.fixture
def built(tmp_path, monkeypatch):
    """A page of two files."""
    folder = tmp_path / "page"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text("<!doctype html><p>map")
    (folder / "assets" / "main.js").write_text("let x = 1")
    monkeypatch.setattr(files, "FOLDER", folder)
    return folder


@pytest.fixture
def not_built(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "FOLDER", tmp_path / "nothing")


def test_the_page_and_its_files_are_given_without_a_token_under_a_strict_policy(
    place, built
):
    with served(place, token="secret") as client:
        page, script = client.get("/"), client.get("/page/files/assets/main.js")
        assert client.get("/v1/status").status_code == 401
        assert client.get("/page/state").status_code == 401
        for one in ENDPOINTS:
            if one.path not in (files.INDEX, files.FILE):
                varying = "{stream}{query}{object}{layer}{collection}{feature}{lease}{z}{x}{y}"
                varying += "{table}{other}"
                names = dict.fromkeys(varying.strip("{}").split("}{"), "1")
                reply = client.request(one.method, one.path.format(**names))
                assert reply.status_code == 401, one.path
    assert (page.status_code, page.text) == (200, "<!doctype html><p>map")
    assert (script.status_code, script.text) == (200, "let x = 1")
    assert script.headers["content-type"].startswith("text/javascript")
    for one in (page, script):
        policy = one.headers["content-security-policy"]
        assert policy.startswith("default-src 'self'; ")
        assert "unsafe" not in policy
        assert "http" not in policy


def test_with_tiles_of_somebody_else_the_page_may_ask_their_origin_and_nobody_more(
    place, built
):
    with served(place) as client:
        own = client.get("/").headers
    (place.conf / "operations.toml").write_text(
        '[server]\ntile_url = "https://tile.example.org:8443/a-b/{z}/{x}/{y}.png?key=1"\n'
    )
    with served(place) as client:
        page, script = client.get("/"), client.get("/page/files/assets/main.js")
        told = client.get("/page/state").json()["base_map"]
    before = own["content-security-policy"]
    for one in (page, script):
        policy = one.headers["content-security-policy"]
        assert policy == f"{before}; connect-src 'self' https://tile.example.org:8443"
        assert one.headers["referrer-policy"] == "strict-origin"
    assert own["referrer-policy"] == "no-referrer"
    assert told == {
        "url": "https://tile.example.org:8443/a-b/{z}/{x}/{y}.png?key=1",
        "attribution": None,
    }


def test_a_file_that_did_not_change_is_not_sent_again(place, built):
    with served(place) as client:
        first = client.get("/page/files/assets/main.js")
        again = {"If-None-Match": first.headers["etag"]}
        assert (
            client.get("/page/files/assets/main.js", headers=again).status_code == 304
        )
        (built / "assets" / "main.js").write_text("let x = 22")
        changed = client.get("/page/files/assets/main.js", headers=again)
    assert (changed.status_code, changed.text) == (200, "let x = 22")


@pytest.mark.parametrize(
    "path", ["/page/files/none.js", "/page/files/%2e%2e/secret.txt", "/page/files/..%2fsecret.txt", "/page/files/"]
)  # fmt: skip
def test_what_is_not_below_the_folder_does_not_exist(place, built, path):
    with served(place) as client:
        told = client.get(path)
    assert told.status_code == 404
    assert "secret" not in told.text.replace("secret.txt", "")


def test_a_page_that_is_not_built_says_how_to_build_it(place, not_built):
    with served(place) as client:
        told = client.get("/")
        assert client.get("/page/files/main.js").status_code == 404
    assert told.status_code == 503
    assert "make setup" in told.text
