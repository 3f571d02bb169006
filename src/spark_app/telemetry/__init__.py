import logging

from spark_app.settings import process_environment
from spark_app.telemetry.environment_variables import drop_wrong

# Both come before anything of the SDK is imported: it logs about wrong variables then, and raises on some.
logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
WRONG_VARIABLES = drop_wrong(process_environment())
