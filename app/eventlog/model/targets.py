"""Finds what a query writes, in the description of its plan: a table or a path."""

import re
from typing import Final

from msgspec import Raw

_COMMAND: Final = re.compile(
    rb"\(\d+\) (?:Execute )?(?:SaveIntoDataSourceCommand|InsertInto\w+|\w*AsSelect\w*|AppendData\w*|Overwrite\w+"
    rb"|MergeInto\w*|DeleteCommand|UpdateCommand) *\\n(?:(?:Input|Output)[^\\]*\\n)*Arguments: (.{1,2000})"
)
"""Commands that write, with their arguments (`QueryExecution.explainString` of mode formatted), as JSON has them."""
_NAME: Final = re.compile(rb"((?:`[^`\\]+`\.)+`[^`\\]+`)")
_TABLE: Final = re.compile(rb"\b(?:table|dbtable|topic)=([\w.-]+)")
_PATH: Final = re.compile(rb"\bpath=([^,\]\\]+)")
_FIRST: Final = re.compile(rb"((?:\w+:)?/[^,\\]+)")
_OF_PLAN: Final = re.compile(rb'InsertIntoHadoopFsRelationCommand ([^\s,"]+),')


def target_of(description: Raw, plan: Raw) -> str | None:
    """The table or the path that a query writes; None if it writes none, or none that is known.

    Args:
        description: The description of the physical plan, as JSON.
        plan: The tree of the same plan, where the description has another format (`spark.sql.ui.explainMode`).
    """
    command = _COMMAND.search(bytes(description))
    arguments = command[1].partition(rb"\n\n")[0] if command else b""
    table = _NAME.search(arguments)
    if table:
        return table[1].decode(errors="replace").replace("`", "").removeprefix("spark_catalog.")
    paths = (_PATH.search(arguments), _FIRST.match(arguments), _TABLE.search(arguments), _OF_PLAN.search(bytes(plan)))
    match = next(filter(None, paths), None)
    return match[1].decode(errors="replace").strip() if match else None
