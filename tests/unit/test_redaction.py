import pytest

from spark_app.redaction import REDACTED, excerpt, is_secret, redacted, setting, shortened


@pytest.mark.parametrize(
    "name",
    [
        "spark.shop.passwd", "spark.jdbc.password", "spark.ssl.keyPassword", "ssl.keystore.pass", "DB_PWD",
        "spark.kubernetes.authenticate.oauthToken", "spark.hadoop.fs.s3a.access.key", "AWS_ACCESS_KEY_ID",
        "spark.hadoop.fs.s3a.secret.key", "fs.azure.account.key.shop.blob.core.windows.net", "spark.my.apiKey",
        "spark.kafka.sasl.jaas.config", "kafka.ssl.keystore.key", "GOOGLE_CREDENTIALS", "Authorization",
        "dbpass", "spark.executorEnv.OPENAI_KEY",
    ],
)  # fmt: skip
def test_a_secret_is_recognised_by_its_name(name: str) -> None:
    """Those of Spark, Hadoop, databases, stores and brokers."""
    assert is_secret(name)
    assert setting(name, "hunter2") == REDACTED


@pytest.mark.parametrize(
    "name",
    [
        "spark.sql.shuffle.partitions", "spark.shop.tokenizer", "spark.bypass", "spark.compass", "PARTITION_KEY",
        "spark.shop.design", "spark.keyBy",
        "spark.hadoop.fs.s3a.aws.credentials.provider", "spark.io.encryption.keySizeBits", "spark.kerberos.keytab",
        "hadoop.security.authorization.manager",
    ],
)  # fmt: skip
def test_names_that_only_resemble_secrets_are_shown(name: str) -> None:
    """Parts of other words, and names of classes, sizes and files."""
    assert not is_secret(name)
    assert setting(name, "128") == "128"


def test_true_and_false_are_never_masked() -> None:
    """Any other value may be a password."""
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
        ("OPTIONS (user 'u', password 'hunter2hunter2')", "OPTIONS (user 'u', password (redacted))"),
        ('.option("password", "hunter2").load', '.option("password", (redacted)).load'),
        ("ArrayBuffer((password,hunter2), (n,1))", "ArrayBuffer((password,(redacted)), (n,1))"),
        ("Map(user -> me, password -> hunter2, n -> 1)", "Map(user -> me, password -> (redacted), n -> 1)"),
        (r"{\"password\":\"hunter 2\",\"n\":1}", r"{\"password\":(redacted),\"n\":1}"),
        (r"{\"password\":\"hun\\\"ter2\",\"n\":1}", r"{\"password\":(redacted),\"n\":1}"),
        ("dbpass=hunter2 n=1", "dbpass=(redacted) n=1"),
        ("OPENAI_KEY=hunter2", "OPENAI_KEY=(redacted)"),
        ("sent Bearer eyJhbGciOiJIUzI1NiJ9.x to", "sent Bearer (redacted) to"),
        ("password=hun,ter2,user=me", "password=(redacted),user=me"),
        ("{password=hun,ter2, user=me}", "{password=(redacted), user=me}"),
        ("jdbc:x://me:hun@ter2@host/db", "jdbc:x://(redacted)@host/db"),
        ("https://hunter2@host/x", "https://(redacted)@host/x"),
        ("https://me:hun:ter2@host:4318/v1 or you:pw@host", "https://(redacted)@host:4318/v1 or (redacted)@host"),
    ],
)
def test_a_secret_in_text_is_masked(text: str, shown: str) -> None:
    """In options, URLs, objects and headers, also at the end of a long plan; the rest stays."""
    assert redacted(text) == shown
    assert redacted(shown) == shown
    plan = "FileScan\n" * 2_000
    assert redacted(f"{plan}{text}") == f"{plan}{shown}"


@pytest.mark.parametrize(
    "text",
    [
        "abfss://container@account.dfs.core.windows.net/x", "Unrecognized token 'abc': was expecting", "12:30:01 a@b",
        "the password policy is 'strict'", "password must not be empty", 'secrets "spark" not found', "bypass=1",
        "compass=north", "EqualTo(token,5)", '{"name":"token","type":"string"}', '["id","password","n"]',
        "PRIMARY_KEY=id", "bearer authentication failed", "Project [token#1, user#2]", "[DUPLICATED_MAP_KEY: x]",
        "isnotnull(token#12)", "at a.B.c(D.java:12), e.F@1f2e", "spark.shop.tokenizer=a", "--no-password --date x",
    ],
)  # fmt: skip
def test_other_text_is_unchanged(text: str) -> None:
    """Azure containers, columns, times, Java objects, options without a value, prose."""
    assert redacted(text) == text


@pytest.mark.parametrize(
    ("text", "most", "shown"),
    [
        ("abc", 3, "abc"),
        ("abcd", 3, "ab…"),
        ("a\nb", 3, "a\nb"),
        ("--token " + "x" * 50 + " next", 30, "--token (redacted) next"),
        ("--token " + "x" * 5000 + " next", 30, "--token (redacted)…"),
    ],
)
def test_a_shortened_text_says_that_it_is_and_has_no_secret(text: str, most: int, shown: str) -> None:
    """Also where the secret is longer than what is shown."""
    assert shortened(text, most) == shown


def test_an_excerpt_stays_on_a_line() -> None:
    """An error may have a hundred."""
    assert excerpt("a\n  b" * 100, 5) == "a ba…"
