# One image for master, workers, history server, drivers, bridge and Jupyter, and for drivers and executors on Kubernetes, so that
# they share one Python and one set of jars.
# `docker compose build` builds it; the classic builder (DOCKER_BUILDKIT=0) works, too.
ARG DEBIAN_IMAGE=debian:trixie-slim
FROM ${DEBIAN_IMAGE}

# libopenblas0-serial: BLAS and LAPACK of MLlib, with one thread for each task.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates curl libopenblas0-serial openjdk-21-jre-headless procps python3 \
        python3-venv \
    && rm -rf /var/lib/apt/lists/*

ENV JAVA_HOME=/usr/lib/jvm/default-java \
    LANG=C.UTF-8 \
    PATH=/app/scripts:/opt/venv/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
    PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    XDG_CACHE_HOME=/opt/cache
RUN ln -sfn "$(dirname "$(dirname "$(readlink -f /usr/bin/java)")")" /usr/lib/jvm/default-java

# The uid of the official Spark images, so that both can share volumes.
RUN groupadd --gid 185 spark \
    && useradd --uid 185 --gid 185 --home-dir /opt/home --create-home spark \
    && install --directory --owner=spark --group=spark /app /opt/venv /opt/cache /scratch /var/lib/spark-master \
        /notebooks /state /data /data/raw /data/warehouse /data/checkpoints /data/runs /data/logs /data/reports /data/spark-events
USER spark
WORKDIR /app

# Packages change rarely and the code often, so that packages get a layer before the code.
COPY --chown=spark:spark requirements-image.txt /app/
RUN python3 -m venv /opt/venv \
    && sed -n '/^setuptools==/,/[^\\]$/p' requirements-image.txt >/opt/venv/backend.txt \
    && pip install --no-cache-dir --require-hashes --requirement /opt/venv/backend.txt \
    && pip install --no-cache-dir --require-hashes --no-build-isolation --config-settings=--build-option=--compression=stored \
        --requirement requirements-image.txt \
    && rm /opt/venv/backend.txt

# What .dockerignore lets in: of a clone the library and the demo shop; of the stack of a project, the wheel in wheels/.
COPY --chown=spark:spark . /app/
# What pip installs as the library: its options and the requirement.
ARG LIBRARY="--editable ."
RUN pip install --no-cache-dir --no-deps --no-build-isolation ${LIBRARY} \
    && ln -s "$(python -c 'import pyspark; print(pyspark.__path__[0])')" /opt/venv/spark \
    && ln -s spark-app /opt/venv/bin/spark-app.py \
    && python -m spark_app.spark.jars \
    && python -m spark_app.spark.jars s3 \
    && python -m spark_app.spark.jars jdbc
# In a layer after the jars: the archive depends on the order in which the jar folder is listed, which a layer may change.
RUN python -m spark_app.spark.class_data_archive && ln -s /opt/cache/spark-app/class-data/*.jsa /opt/cache/spark-app/class-data.jsa

# spark-submit, pyspark, python and notebooks use the cluster without setup, in each container. A folder of configuration on
# the class path disables the class-data archive: the daemons start without it, and so do spark-app's own sessions.
RUN mkdir /opt/venv/spark-conf \
    && cp -r config/jupyter /opt/venv/share/jupyter/kernels/spark \
    && if [ -d notebooks ]; then mv notebooks/* /notebooks; fi \
    && cat config/spark/spark-defaults.conf config/spark/cluster.conf >/opt/venv/spark-conf/spark-defaults.conf \
    && cp config/spark/spark-env.sh /opt/venv/spark-conf/ \
    && python -m spark_app.observe.python_start /opt/venv/call-sites

# PYTHONPATH: Python programs name the lines that start Spark jobs (docs/decisions/0011-call-sites.md).
# SPARK_PYTHON_LOGS: what drivers log in Python goes to the folder that the collector reads.
ENV PYTHONPATH=/opt/venv/call-sites \
    SPARK_PYTHON_LOGS=/data/logs \
    SPARK_HOME=/opt/venv/spark \
    SPARK_CONF_DIR=/opt/venv/spark-conf \
    SPARK_LOCAL_DIRS=/scratch \
    SPARK_DAEMON_JAVA_OPTS="-XX:+UnlockDiagnosticVMOptions -XX:ArchiveRelocationMode=0 -XX:SharedArchiveFile=/opt/cache/spark-app/class-data.jsa" \
    SPARK_APP_HOME=/data \
    SPARK_APP_WAREHOUSE=warehouse \
    SPARK_APP_CHECKPOINTS=checkpoints

# Commands run as they are given; Spark on Kubernetes starts drivers and executors by `driver` and `executor`.
ENTRYPOINT ["/app/scripts/kubernetes-entrypoint.sh"]
CMD ["bash"]
