"""The client of an object store, by obstore: what delta-rs is told of a store, it is told as well."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from obstore.store import AzureStore, GCSStore, HTTPStore, S3Store

Client = S3Store | GCSStore | AzureStore | HTTPStore

_BUCKETS: Mapping[str, type[Client]] = {"s3": S3Store, "gs": GCSStore, "az": AzureStore}


def client_of(uri: str, settings: Mapping[str, str], *, timeout: str = "60s") -> Client:
    """Returns a client whose paths are relative to what a URI names.

    Args:
        uri: `scheme://bucket/prefix`, or a folder of a web server.
        settings: As `ObjectStore.settings` says them.
        timeout: After how long a request is given up.
    """
    config: dict[str, Any] = dict(settings)
    allow_http = config.pop("allow_http", "false") == "true"
    options: Any = {"allow_http": allow_http, "connect_timeout": "5s", "timeout": timeout}
    retries: Any = {"max_retries": 5, "retry_timeout": timedelta(seconds=30)}
    scheme, _, place = uri.partition("://")
    if scheme not in _BUCKETS:
        if "web_token" in config:
            options["default_headers"] = {"Authorization": f"Bearer {config['web_token']}"}
        return HTTPStore(uri, client_options=options, retry_config=retries)
    bucket, _, prefix = place.partition("/")
    made: Any = _BUCKETS[scheme]  # their settings have types of their own
    client: Client = made(bucket, prefix=prefix or None, config=config, client_options=options, retry_config=retries)
    return client
