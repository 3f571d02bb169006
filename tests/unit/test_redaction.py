import pytest

from app.redaction import REDACTED, is_secret, redacted, setting


@pytest.mark.parametrize(
    "name",
    [
        "spark.shop.passwd", "spark.jdbc.password", "spark.ssl.keyPassword", "ssl.keystore.pass", "DB_PWD",
        "spark.kubernetes.authenticate.oauthToken", "spark.hadoop.fs.s3a.access.key", "AWS_ACCESS_KEY_ID",
        "spark.hadoop.fs.s3a.secret.key", "fs.azure.account.key.shop.blob.core.windows.net", "spark.my.apiKey",
        "spark.kafka.sasl.jaas.config", "GOOGLE_CREDENTIALS", "Authorization",
    ],
)  # fmt: skip
def test_a_secret_is_known_by_its_name(name: str) -> None:
    """By what Spark and Hadoop call sensitive, and by what databases, stores and brokers call theirs."""
    assert is_secret(name)
    assert setting(name, "hunter2") == REDACTED


@pytest.mark.parametrize(
    "name",
    [
        "spark.sql.shuffle.partitions", "spark.shop.tokenizer", "spark.bypass", "spark.shop.design", "spark.keyBy",
        "spark.hadoop.fs.s3a.aws.credentials.provider", "spark.io.encryption.keySizeBits", "spark.kerberos.keytab",
        "hadoop.security.authorization.manager",
    ],
)  # fmt: skip
def test_what_only_looks_like_a_secret_is_shown(name: str) -> None:
    """Names that have a part of such a word in them, and those of classes, sizes and files."""
    assert not is_secret(name)
    assert setting(name, "128") == "128"


def test_a_switch_is_no_secret() -> None:
    """Whether tokens are fetched is worth knowing; a number may be somebody's password."""
    assert setting("spark.security.credentials.hive.enabled", "False") == "False"
    assert setting("spark.shop.password", "123456") == REDACTED


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("-Xmx1g -Ddb.password=hunter2 -Dx=1", "-Xmx1g -Ddb.password=(redacted) -Dx=1"),
        ("jdbc:db://h?user=me&password=hunter2&ssl=true", "jdbc:db://h?user=me&password=(redacted)&ssl=true"),
        ("jdbc:sqlserver://h;user=me;pwd=hunter2;a=1", "jdbc:sqlserver://h;user=me;pwd=(redacted);a=1"),
        ("fs.s3a.access.key: hunter2", "fs.s3a.access.key: (redacted)"),
        ("s3a://b/x?X-Amz-Signature=hunter2&a=1", "s3a://b/x?X-Amz-Signature=(redacted)&a=1"),
        ("https://b/x?sv=1&sig=hunter2%3D", "https://b/x?sv=1&sig=(redacted)"),
        ('Login required username="me" password="hunter 2";', 'Login required username="me" password=(redacted);'),
        (r'password="hun\"ter2" x', "password=(redacted) x"),
        ('password="hunter2 and a cut', "password=(redacted)"),
        ("{'password': 'hunter 2', 'n': 1}", "{'password': (redacted), 'n': 1}"),
        ('{"apiKey":"hunter2","n":1}', '{"apiKey":(redacted),"n":1}'),
        ("Authorization: Bearer hunter2", "Authorization: (redacted)"),
        ("job.py --db-password hunter2 --date x", "job.py --db-password (redacted) --date x"),
        ("https://me:hun:ter2@host:4318/v1 or you:pw@host", "https://(redacted)@host:4318/v1 or (redacted)@host"),
    ],
)
def test_a_secret_in_a_text_is_masked(text: str, shown: str) -> None:
    """What has a name in an option, an address, an object or a header, or stands before a host; the rest stays."""
    assert redacted(text) == shown
    assert redacted(shown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "abfss://container@account.dfs.core.windows.net/x", "Unrecognized token 'abc': was expecting", "12:30:01 a@b",
        "isnotnull(token#12)", "at a.B.c(D.java:12), e.F@1f2e", "spark.shop.tokenizer=a", "--no-password --date x",
    ],
)  # fmt: skip
def test_other_text_stays_as_it_is(text: str) -> None:
    """Containers of Azure, columns, times, objects of Java, options without a value."""
    assert redacted(text) == text
