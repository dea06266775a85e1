# Serves models without torch. With Docker, Podman or Buildah:
#   docker build -t regard .
#   docker run -v regard:/data regard keys make team --data /data
#   docker run --stop-timeout 75 -p 127.0.0.1:5000:5000 -v "$PWD/en-de:/models/en-de:ro" -v regard:/data regard \
#       serve /models/en-de --host 0.0.0.0 --data /data
FROM debian:12-slim AS build
RUN apt-get update && apt-get install -y --no-install-recommends g++ python3-dev python3-venv
COPY . /src
RUN python3 -m venv /build && /build/bin/pip install --no-cache-dir -q setuptools && \
    /build/bin/pip wheel -q --no-deps -w /built /src && \
    /build/bin/python /src/scripts/divide_wheel.py /built/regard-*.whl /wheels && cp /src/constraints.txt /wheels

FROM debian:12-slim
RUN apt-get update && apt-get install -y --no-install-recommends python3-venv libstdc++6 && \
    rm -rf /var/lib/apt/lists/*
COPY --from=build /wheels /wheels
RUN python3 -m venv /opt/regard && \
    /opt/regard/bin/pip install --no-cache-dir -q -c /wheels/constraints.txt --find-links /wheels 'regard-run[serve]' && \
    rm -r /wheels && useradd --uid 10001 regard && install -d -o regard /data
USER regard
VOLUME /data
EXPOSE 5000
HEALTHCHECK --start-period=10s CMD ["/opt/regard/bin/python", "-c", \
    "from urllib.request import urlopen; urlopen('http://127.0.0.1:5000/readyz')"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["/opt/regard/bin/regard"]
CMD ["--help"]
