"""Fixtures of the integrations."""

import pytest

from tests.support.engines import ENGINES, Engine


@pytest.fixture
def connection(postgres):
    """A connection; the tables of the test before are gone."""
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("drop schema public cascade; create schema public")
        yield connection


@pytest.fixture(params=ENGINES)
def engine(request, tmp_path):
    """Each engine, with nothing in it."""
    address = None
    if request.param == "pgvector":
        request.getfixturevalue("connection")
        address = request.getfixturevalue("postgres")
    engine = Engine(request.param, tmp_path, address)
    yield engine
    engine.close()
