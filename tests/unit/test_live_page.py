"""Where Airflow finds the live page, whether it answers, and where on it the work of a job is seen."""

import http.server
import inspect
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from st_common.airflow.live_page import DEFAULT, VARIABLE, answers, page_url, place_of
from st_common.cli.serve import serve
from st_common.errors import ConfigError


@contextmanager
def saying(text: str, status: int = 200) -> Iterator[str]:
    """A server that answers whatever is asked with a text; its address."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_the_page_is_where_serve_listens_unless_the_variable_says_another_place():
    assert page_url({}) == page_url({VARIABLE: " "}) == DEFAULT
    port = inspect.signature(serve).parameters["port"].default
    assert DEFAULT.endswith(f":{port}")
    named = {VARIABLE: "https://map.example.org/fairway/"}
    assert page_url(named) == "https://map.example.org/fairway"


@pytest.mark.parametrize(
    "text",
    [
        "localhost:8640",
        "file:///etc/passwd",
        "http://",
        "http://me:secret@host",
        "http://host/?a=1",
    ],
)
def test_what_is_no_address_of_a_page_is_refused_and_not_repeated(text: str):
    with pytest.raises(ConfigError, match=VARIABLE) as refused:
        page_url({VARIABLE: text})
    assert "secret" not in str(refused.value)


@pytest.mark.spec("C9")
def test_only_a_page_of_fairway_answers():
    with saying("<html><title>Fairway</title></html>") as url:
        assert answers(url)
    assert not answers(url), "it has ended"
    with saying("<html><title>Something else</title></html>") as url:
        assert not answers(url)
    with saying("<title>Fairway</title>", status=500) as url:
        assert not answers(url)


def test_what_a_job_made_is_seen_at_its_place():
    assert place_of("load_layer", {"layer": "a&b"}) == "tab=server&layer=a%26b"
    assert place_of("partition", {"version": 1}) == "tab=server&regions=1"
    assert (
        place_of("st_common.processes.report_streams", {"pages": []}) == "tab=queries"
    )
    assert place_of("partition", {}) is place_of("maintain", {"files": 1}) is None
