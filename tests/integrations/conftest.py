"""Fixtures of the integrations."""

import pytest


@pytest.fixture
def connection(postgres):
    """A connection; the tables of the test before are gone."""
    psycopg = pytest.importorskip("psycopg")
    with psycopg.connect(postgres, autocommit=True) as connection:
        connection.execute("drop schema public cascade; create schema public")
        yield connection
