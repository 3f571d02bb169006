# One image for master, workers, history server, driver, bridge and Jupyter, so that Python and jars never differ.
# Built by `docker compose build`; the classic builder (DOCKER_BUILDKIT=0) will do.
ARG DEBIAN_IMAGE=debian:trixie-slim
FROM ${DEBIAN_IMAGE}

RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates curl openjdk-21-jre-headless procps python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*

ENV JAVA_HOME=/usr/lib/jvm/default-java \
    LANG=C.UTF-8 \
    PATH=/app/scripts:/opt/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    XDG_CACHE_HOME=/opt/cache
RUN ln -sfn "$(dirname "$(dirname "$(readlink -f /usr/bin/java)")")" /usr/lib/jvm/default-java

# Spark's own uid in the published images, so that volumes can be shared with them.
RUN groupadd --gid 185 spark \
    && useradd --uid 185 --gid 185 --home-dir /opt/home --create-home spark \
    && install --directory --owner=spark --group=spark /app /opt/venv /opt/cache /scratch /var/lib/spark-master \
        /notebooks /state /data /data/raw /data/warehouse /data/runs /data/logs /data/reports /data/spark-events
USER spark
WORKDIR /app

# The packages change seldom, the program often: each layer has what it needs and no more.
COPY --chown=spark:spark requirements-image.txt /app/
RUN python3 -m venv /opt/venv \
    && sed -n '/^setuptools==/,/[^\\]$/p' requirements-image.txt >/opt/venv/backend.txt \
    && pip install --no-cache-dir --require-hashes --requirement /opt/venv/backend.txt \
    && pip install --no-cache-dir --require-hashes --no-build-isolation --requirement requirements-image.txt \
    && rm /opt/venv/backend.txt

COPY --chown=spark:spark pyproject.toml README.md LICENSE /app/
COPY --chown=spark:spark app /app/app
COPY --chown=spark:spark workers /app/workers
COPY --chown=spark:spark config /app/config
RUN pip install --no-cache-dir --no-deps --no-build-isolation --editable . \
    && ln -s "$(python -c 'import pyspark; print(pyspark.__path__[0])')" /opt/venv/spark \
    && python -c 'from app.jars import ensure_jars; ensure_jars(note=print)'
# A layer later: a folder of several layers is listed in an order of its own, and the archive holds for one order only.
RUN python -m app.jars && ln -s /opt/cache/spark-app/class-data/*.jsa /opt/cache/spark-app/class-data.jsa

# Jupyter, and whatever else reads Spark's own defaults, is on the cluster without a line of set-up.
COPY --chown=spark:spark scripts/run_etl.sh scripts/run_streaming.sh scripts/run_ml.sh /app/scripts/
COPY --chown=spark:spark config/jupyter /opt/venv/share/jupyter/kernels/spark
COPY --chown=spark:spark notebooks /notebooks
RUN mkdir /opt/venv/spark-conf \
    && cat config/spark/spark-defaults.conf config/spark/cluster.conf >/opt/venv/spark-conf/spark-defaults.conf

ENV SPARK_HOME=/opt/venv/spark \
    SPARK_DAEMON_JAVA_OPTS=-XX:SharedArchiveFile=/opt/cache/spark-app/class-data.jsa \
    SPARK_APP_HOME=/data \
    SPARK_APP_WAREHOUSE=warehouse
