"""The rows of a source in a table that others write: `table(...)` of a `Source`."""

from spark_app.engine.code_location import CodeLocation, nearest
from spark_app.warehouse.source_table import KINDS, Kind, LakeTable


def table(name: str, *, by: str, format: Kind | None = None) -> LakeTable:  # noqa: A002 - Spark's name for it
    """A table that others write: `table("s3a://lake/orders", by="ordered_at")`, `table("sales.orders", by="day")`.

    Args:
        name: Its folder or URI, below `raw.path` unless it is absolute; or its name in a catalog, which has no slash.
        by: The column that says which day a row belongs to: a date, an instant (days are those of UTC), or text that
            begins with YYYY-MM-DD.
        format: `delta` (by default), `parquet` or `orc`, of a table in a folder; a catalog knows it.

    Raises:
        DeclarationError: There is no such format, or the table is one of a catalog.
    """
    location = CodeLocation.of_caller()
    is_folder = "/" in name
    if not is_folder and format is not None:
        raise location.error(
            f"table {name!r} is a name of a catalog, which knows its format: leave out format={format!r}, or write a "
            f"folder, such as './{name}'"
        )
    if is_folder and format is not None and format not in KINDS:
        raise location.error(f"a table of format {format!r} cannot be read: {nearest(str(format), KINDS)}")
    if not by.strip():
        raise location.error(f"table {name!r}: by is empty: name the column that says which day a row belongs to")
    return LakeTable(name.removeprefix("./"), by, (format or "delta") if is_folder else "catalog", location.shown)
