# Floodmark with all drivers, for `floodmark run` and for drivers and executors of Spark on Kubernetes: docs/cluster.md.

FROM debian:bookworm-slim AS build
RUN apt-get update && apt-get install --yes --no-install-recommends python3 python3-venv
WORKDIR /source
COPY requirements.lock ./
RUN python3 -m venv /opt/floodmark
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
# The lock file also has what developers need; as constraints it gives the versions of what is installed.
RUN /opt/floodmark/bin/pip install --no-cache-dir --disable-pip-version-check \
    --constraint requirements.lock '.[postgres,mysql,oracle,kafka,avro,delta,iceberg,jdbc]'
COPY docker/entrypoint.sh examples/submit/pipeline.py /opt/floodmark/
RUN chmod 0755 /opt/floodmark/entrypoint.sh && chmod 0644 /opt/floodmark/pipeline.py

FROM debian:bookworm-slim
RUN apt-get update \
    && apt-get install --yes --no-install-recommends ca-certificates openjdk-17-jre-headless python3 tini \
    && rm -rf /var/lib/apt/lists/* \
    # 185 is the user of Spark's own images, so pods of both can share files.
    && groupadd --gid 185 spark \
    && useradd --uid 185 --gid 185 --home-dir /data --no-create-home --shell /usr/sbin/nologin spark \
    && install --directory --owner 185 --group 185 --mode 0750 /data
COPY --from=build /opt/floodmark /opt/floodmark
ENV PATH=/opt/floodmark/bin:$PATH \
    SPARK_HOME=/opt/floodmark/lib/python3.11/site-packages/pyspark \
    PYSPARK_PYTHON=/opt/floodmark/bin/python \
    PYTHONUNBUFFERED=1
USER 185:185
WORKDIR /data
ENTRYPOINT ["tini", "-s", "--", "/opt/floodmark/entrypoint.sh"]
CMD ["--help"]
