"""An S3 server of this machine, for tests."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

import boto3
import fsspec
import pytest
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.server import ThreadedMotoServer

BUCKET = "photographs"


@contextmanager
def running() -> Iterator[str]:
    """Start the server with an empty bucket; the environment says where it is, as for real ones.

    Yields:
        The bucket's address.
    """
    logging.getLogger("werkzeug").setLevel(
        logging.ERROR
    )  # a line a request takes longer than some requests
    server, s3 = ThreadedMotoServer("127.0.0.1", 0, verbose=False), create_backend_app("s3")
    with pytest.MonkeyPatch.context() as changed:
        # else each request lists moto's folder twice to find its service
        changed.setattr(DomainDispatcherApplication, "get_application", lambda self, environ: s3)
        server.start()
        host, port = server.get_host_and_port()
        for name, value in (
            ("AWS_ENDPOINT_URL", f"http://{host}:{port}"),
            ("AWS_ACCESS_KEY_ID", "test"),
            ("AWS_SECRET_ACCESS_KEY", "test"),
            ("AWS_DEFAULT_REGION", "us-east-1"),
        ):
            changed.setenv(name, value)
        fsspec.get_filesystem_class("s3").clear_instance_cache()
        boto3.client("s3").create_bucket(Bucket=BUCKET)
        try:
            yield f"s3://{BUCKET}"
        finally:
            fsspec.get_filesystem_class("s3").clear_instance_cache()
            server.stop()


@contextmanager
def counted() -> Iterator[list[str]]:
    """List the requests that are sent meanwhile, such as GET BUCKET/KEY."""
    sent: list[str] = []
    before = DomainDispatcherApplication.__call__

    def counting(self: object, environ: dict[str, str], start_response: object) -> object:
        sent.append(f"{environ['REQUEST_METHOD']} {environ['PATH_INFO'].lstrip('/')}")
        return before(self, environ, start_response)

    with pytest.MonkeyPatch.context() as changed:
        changed.setattr(DomainDispatcherApplication, "__call__", counting)
        yield sent
