"""A job that reads files of text only to find out which columns they have."""

import re
from typing import Final

from spark_app.eventlog.diagnoses.rule import rule
from spark_app.eventlog.diagnoses.stage import StageView
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model import call_sites
from spark_app.formatting import count, duration, size

READERS: Final = ("json", "csv", "xml", "load")
"""The calls of a `DataFrameReader` that infer a schema by a job."""
_TEXT: Final = re.compile(r'"Scan text |^BinaryFileRDD ')
"""Finds what such a job reads, by its RDDs: lines, or whole files (`multiLine`)."""


@rule(explains=("repeated_scan",), explains_in="application")
def inferred_schema(view: StageView) -> Finding | None:
    """A job that reads files of text only to find out which columns they have.

    Evidence: the line of the reader, the rows and bytes, and the duration of the job.
    Why: `read.json` without a schema, and `read.csv` with `inferSchema`, read all files once to tell the
        types of the columns; the query reads them again.
    Change: `.schema(...)` of the reader. Where the columns are not known before, the option `samplingRatio` lets Spark
        parse a part of the rows.
    Threshold: only the cost. Explained by it: `repeated_scan`, which comes behind it.
    Cost: the duration of its stage, since the driver waits for it before there is a query.
    """
    site, job = call_sites.parse(view.stage.info.name), view.app.job_of(view.stage)
    if site is None or site.call not in READERS or job is None or job.query is not None:
        return None
    if not any(_TEXT.search(f"{rdd.name} {rdd.scope}") for rdd in view.stage.info.rdds):
        return None
    totals = view.stage.totals
    where = f" at {site.file.rpartition('/')[2]}:{site.line}" if site.is_of_program else ""
    return view.finding(
        "inferred_schema",
        f"reads {count(totals.input_records)} rows, {size(totals.input_bytes)}, in {duration(view.wall_ms)} only to "
        "infer the schema; queries read them again",
        advice=f"Give the reader{where} the schema: print df.schema.toDDL() once, and read with .schema('...')"
        f".{site.call}(...) without inferSchema; of JSON the columns that are used are enough. Until then, "
        ".option('samplingRatio', 0.01) parses fewer rows.",
        numbers={"rows": totals.input_records, "read_bytes": totals.input_bytes, "inferring_ms": view.wall_ms},
        cost_ms=float(view.wall_ms),
    )
