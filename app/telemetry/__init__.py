import logging

from app.settings import process_environment
from app.telemetry.environment_variables import drop_wrong

# Both come before anything of the SDK is imported: it logs about wrong variables then, and raises on some.
logging.getLogger("opentelemetry").addHandler(logging.NullHandler())
WRONG_VARIABLES = drop_wrong(process_environment())
