"""`spark-app resend`: sends what runs could not deliver while the collector was away."""

from spark_app.commands import options
from spark_app.errors import ConfigError, MachineError


def resend(*, json: options.Json = False, config: options.Config = None) -> None:
    """Send the telemetry of runs that the OTLP endpoint has not accepted yet, once; a bridge does so by itself."""
    from spark_app.commands.terminal import Terminal
    from spark_app.settings import load_settings
    from spark_app.telemetry import resend as stored
    from spark_app.telemetry.errors import TelemetryErrors
    from spark_app.telemetry.otlp_client import otlp_client

    settings, terminal, errors = load_settings(config), Terminal(), TelemetryErrors()
    client = otlp_client(errors=errors)
    if not client.takes_anything:
        raise ConfigError("no OTLP endpoint is configured: set OTEL_EXPORTER_OTLP_ENDPOINT")
    folders = stored.undelivered(settings.runs_path)
    results = {folder.name: stored.resend(folder, client) for folder in folders}
    client.close()
    runs = {name: str(each) for name, each in results.items()}
    lines = [f"{name}: {text}" for name, text in runs.items()]
    if not all(each.is_complete for each in results.values()):
        why = next(iter(errors), "it gave no answer")
        raise MachineError(
            f"the OTLP endpoint has not accepted everything: {why}; try again later ({'; '.join(lines)})"
        )
    if json:
        terminal.answer(runs=runs)
    for line in () if json else lines or [f"nothing to send: no run in {settings.runs_path} has anything left"]:
        terminal.line(line)
