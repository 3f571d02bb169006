"""What a state keeps of a change feed: of each key the newest row, or all its versions; and none that is deleted."""

from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from spark_app.engine.history import CURRENT, USUAL
from spark_app.warehouse.tables import DELETED, same_key

SINCE, UNTIL = USUAL


@dataclass(frozen=True)
class ChangeFeed:
    """How the changes of a state are ordered, and which of them delete a row.

    Attributes:
        key: The columns that identify a row.
        newest: The columns by whose largest value the newest change of a key is known; empty where days say that.
        deleted: The SQL condition that a change deletes its row; empty where none does.
        is_history: Whether each change is a version of its row (a slowly changing dimension of type 2).
    """

    key: Sequence[str]
    newest: Sequence[str] = ()
    deleted: str = ""
    is_history: bool = False

    @property
    def keeps_deleted(self) -> bool:
        """Whether it has to be known when a row was deleted: an older change may come afterwards."""
        return bool(self.newest and self.deleted)

    def marked(self, rows: DataFrame) -> DataFrame:
        """Changes with the column that says whether each deletes its row, if some do."""
        if not self.deleted:
            return rows
        return rows.withColumn(DELETED, F.coalesce(F.expr(self.deleted), F.lit(False)))

    def changes(self, changes: DataFrame, known: DataFrame, deleted: DataFrame) -> DataFrame:
        """The rows of the state that changes make or, with the column `DELETED`, delete.

        Args:
            changes: What the function of the state returned, marked.
            known: The rows of the state.
            deleted: The changes that have deleted rows before.
        """
        if self.is_history:
            return self._versions(changes, known, deleted)
        return self._newer(changes, known, deleted) if self.newest else changes

    def _versions(self, changes: DataFrame, known: DataFrame, deleted: DataFrame) -> DataFrame:
        """All versions of each key that has a change: each is true from its instant until that of the next one.

        Of changes of the same instant one counts: the later one, that which deletes, then the one with the larger
        content. A change that deletes ends the version before it, and is kept beside the table: a version may come late
        and lie before it.

        Columns out: those of the changes, valid_from, valid_to (null for a version that is true now), is_current.
        """
        [newest] = self.newest
        touched = changes.select(*self.key).distinct()
        columns = changes.columns
        missing = F.raise_error(F.lit(f"{newest} is null, which says from when on a version is true"))
        new = changes.withColumns({SINCE: F.coalesce(newest, missing), "_is_new": F.lit(True)})
        before = known.unionByName(deleted, allowMissingColumns=True).alias("old")
        before = before.join(touched.alias("new"), F.expr(same_key(self.key)), "left_semi")
        if self.deleted:
            before = before.withColumn(DELETED, F.coalesce(DELETED, F.lit(False)))
        events = new.unionByName(before.select(*columns, SINCE, F.lit(False).alias("_is_new")))
        last = [F.col(DELETED).desc()] if self.deleted else []
        order = [F.col("_is_new").desc(), *last, F.xxhash64(*columns).desc()]
        rank = F.row_number().over(Window.partitionBy(*self.key, SINCE).orderBy(*order))
        single = events.withColumn("_rank", rank).where("_rank = 1")
        until = F.lead(SINCE).over(Window.partitionBy(*self.key).orderBy(SINCE))
        return single.select(*columns, SINCE, until.alias(UNTIL), until.isNull().alias(CURRENT))

    def _newer(self, changes: DataFrame, known: DataFrame, deleted: DataFrame) -> DataFrame:
        """Of each key the newest change, if it is not older than what is known of the key.

        Of changes that are equally new, the one that deletes counts, then the one with the larger content, so that the
        same changes give the same rows in whatever order they come.
        """
        last = [F.col(DELETED).desc()] if self.deleted else []
        order = [*(F.col(name).desc_nulls_last() for name in self.newest), *last, F.xxhash64(*changes.columns).desc()]
        rank = F.row_number().over(Window.partitionBy(*self.key).orderBy(*order))
        newest = changes.withColumn("_rank", rank).where("_rank = 1").drop("_rank")
        seen = known.select(*self.key, *self.newest).unionByName(deleted.select(*self.key, *self.newest))
        since = seen.groupBy(*self.key).agg(F.max(F.struct(*self.newest)).alias("since"))
        both = newest.alias("new").join(since.alias("old"), F.expr(same_key(self.key)), "left")
        is_newer = F.col("old.since").isNull() | (_struct("new", self.newest) >= F.col("old.since"))
        return both.where(is_newer).select("new.*")


def _struct(alias: str, names: Sequence[str]) -> Column:
    return F.struct(*[F.col(f"{alias}.`{name}`") for name in names])
