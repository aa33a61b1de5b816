# syntax=docker/dockerfile:1
FROM python:3.12-slim AS wheels
RUN apt-get update && apt-get install --yes --no-install-recommends maven
COPY . /source
ARG EXTRAS=gate
RUN pip wheel --no-cache-dir --wheel-dir /wheels /source/jars "/source[$EXTRAS]"

FROM python:3.12-slim
ARG EXTRAS=gate
RUN --mount=type=bind,from=wheels,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-compile --no-index --find-links /wheels \
    reassure-zookeeper-jars "reassure[$EXTRAS]"
RUN useradd --create-home reassure
USER reassure
WORKDIR /home/reassure
ENTRYPOINT ["reassure"]
