"""The URL of a database without its password, and what is said where it cannot be read."""

import datetime

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.types import StructType

from spark_app.errors import InputError, MachineError
from spark_app.warehouse.source_database import SourceDatabase, address

DAY = datetime.date(2024, 5, 1)
TABLE = SourceDatabase("CRM_URL", "crm.customers", "updated_at", 1)


@pytest.mark.parametrize(
    ("text", "url", "login"),
    [
        ("postgresql://me:p%2Fw@host:5433/db", "jdbc:postgresql://host:5433/db", {"user": "me", "password": "p/w"}),
        ("postgres://host/db?sslmode=require", "jdbc:postgresql://host/db?sslmode=require", {}),
        (
            "jdbc:postgresql://host/db?user=me&sslmode=require&password=a%26b",
            "jdbc:postgresql://host/db?sslmode=require",
            {"user": "me", "password": "a&b"},
        ),
        ("mariadb://me@host/db", "jdbc:mysql://host/db?permitMysqlScheme=true", {"user": "me"}),
        ("postgresql://[::1]:5432/db", "jdbc:postgresql://[::1]:5432/db", {}),
    ],
)
def test_a_login_is_apart_from_the_url(text: str, url: str, login: dict[str, str]) -> None:
    """In either form; other parameters stay."""
    found = address(text)
    assert found is not None
    assert (found.url, found.login) == (url, login)


@pytest.mark.parametrize("text", ["sqlite:///x.db", "oracle://host/db", "host/db", "postgresql:///db", "jdbc:"])
def test_what_no_database_is_has_no_address(text: str) -> None:
    """Nor has a URL without a host."""
    assert address(text) is None


def test_what_hinders_reading_is_one_line(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """The variable, what is in it, or the driver: each with what to do, and without the password."""
    monkeypatch.delenv("CRM_URL", raising=False)
    with pytest.raises(
        InputError,
        match=r"^the variable CRM_URL is not set: set it to the URL of the database with crm.customers, postgresql://HOST/",
    ):
        TABLE.read(spark, DAY, StructType())
    monkeypatch.setenv("CRM_URL", "orcale://me:secret@host/db")
    with pytest.raises(InputError, match=r"^the variable CRM_URL has no URL of a database that can be ") as raised:
        TABLE.read(spark, DAY, StructType())
    assert "secret" not in str(raised.value)
    monkeypatch.setenv("CRM_URL", "postgresql://me:secret@host/db")
    with pytest.raises(
        MachineError, match=r"drivers of databases are not .* run `python.* -m spark_app.spark.jars jdbc`"
    ):
        TABLE.read(spark, DAY, StructType())
