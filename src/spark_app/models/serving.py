"""The version of a model that answers requests: the one in production, loaded once and kept until it is replaced."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from spark_app.errors import NotReadyError
from spark_app.models import reference, registry
from spark_app.models.inputs import FeatureSet
from spark_app.models.registry import Version
from spark_app.warehouse import delta_log
from spark_app.warehouse.tables import Warehouse

if TYPE_CHECKING:
    from pyspark.ml import PipelineModel


@dataclass(frozen=True)
class Served:
    """A version in production, ready to score.

    Attributes:
        version: The version.
        model: Its fitted pipeline.
    """

    version: Version
    model: "PipelineModel"


class Serving:
    """Follows what is in production: a look costs the listing of a folder, unless something was promoted since."""

    def __init__(self, model: str, inputs: FeatureSet) -> None:
        """Nothing is loaded yet.

        Args:
            model: `ml.refunds`.
            inputs: Computes the features of requests.
        """
        self._model, self._inputs = model, inputs
        self._promotions: int | None = None
        self._served: Served | None = None

    def served(self, warehouse: Warehouse) -> Served:
        """The version in production now: a micro-batch asks once and scores all of its rows with it.

        Raises:
            NotReadyError: None is in production.
            InputError: Its artifact is gone, or requests have other features than those it was trained on.
        """
        promotions = delta_log.last_version(warehouse.spark, warehouse.path(registry.PROMOTIONS.name))
        if promotions != self._promotions or self._served is None:
            self._served = self._loaded(warehouse)
            self._promotions = promotions
        return self._served

    def _loaded(self, warehouse: Warehouse) -> Served:
        found = registry.production(warehouse, self._model)
        if found is None:
            raise NotReadyError(f"no version of {self._model} is in production: run `spark-app ml`")
        if self._served is not None and self._served.version.artifact == found.artifact:
            return Served(found, self._served.model)
        reference.require_same(warehouse, found, self._inputs)
        return Served(found, registry.load(found))
