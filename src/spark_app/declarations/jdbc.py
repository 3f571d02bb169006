"""The rows of a source in a table of a database: `jdbc(...)` of a `Source`."""

import re

from spark_app.engine.code_location import CodeLocation
from spark_app.warehouse.source_database import DatabaseTable


def jdbc(url: str, table: str, *, by: str, connections: int = 1) -> DatabaseTable:
    """A table of a database: `jdbc("CRM_URL", "customers", by="updated_at")`.

    Args:
        url: The name of the variable of the environment with the URL, `postgresql://USER:PASSWORD@HOST/DATABASE` (or
            `mariadb://`, `mysql://`). No file of the project has a password.
        table: The table, with its schema if that is not the usual one.
        by: The column that says which day a row belongs to: a date, an instant (days are those of UTC), or text that
            begins with YYYY-MM-DD. The database should have an index of it.
        connections: How many connections read a day at once, each a range of the instants of `by`. One alone sees the
            table as it is at one moment.

    Raises:
        DeclarationError: The URL is written here, or a number of connections is below 1.
    """
    location = CodeLocation.of_caller()
    if not re.fullmatch(r"[A-Za-z_]\w*", url):
        raise location.error(
            "jdbc takes the name of the variable that has the URL, so that no password is in the code: "
            'jdbc("CRM_URL", ...), and in the environment CRM_URL=postgresql://USER:PASSWORD@HOST/DATABASE'
        )
    if connections < 1:
        raise location.error(f"connections={connections} of jdbc: at least 1 reads the table {table}")
    if not (table.strip() and by.strip()):
        raise location.error("jdbc names a table, and by the column that says which day a row belongs to")
    return DatabaseTable(url, table, by, connections, location.shown)
