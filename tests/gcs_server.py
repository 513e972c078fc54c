"""Google's XML interface, served by moto's S3: it differs in how requests are signed and in the names of headers.

`python tests/gcs_server.py PORT` serves until it is killed.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import run_simple

_SIGNED = "AWS4-HMAC-SHA256 Credential=any/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=any"

_serve = DomainDispatcherApplication(create_backend_app)


def gcs(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """Answers a request to Google as S3 answers it."""
    environ["HTTP_AUTHORIZATION"] = _SIGNED
    if environ.pop("HTTP_X_GOOG_IF_GENERATION_MATCH", None) == "0":  # only if there is none yet
        environ["HTTP_IF_NONE_MATCH"] = "*"

    def start(status: str, headers: list[tuple[str, str]], *failure: Any) -> Any:
        return start_response(status, [*headers, ("x-goog-generation", "1")], *failure)

    answer: Iterable[bytes] = _serve(environ, start)
    return answer


if __name__ == "__main__":
    run_simple("127.0.0.1", int(sys.argv[1]), gcs, threaded=True)
