# Every target makes the environment it needs the first time, and works offline after that.
#   make demo         a sample shop, profiled, with two batches
#   make test         everything, the law on a few tables; make test-long: on many
#   make test-fast    what needs no Java, in a minute; make test-lowest: on PySpark 4.1
#   make test-exports dbt, Great Expectations, Soda and others run what is exported for them
#   make test-store   profiles on a real S3 server, which it installs where it can
#   make test-feeds   feeds of PostgreSQL through Debezium and Kafka, which it installs where it can
#   make docs         the documentation site, in site/
#   make bench-gpu    the same counts on a GPU, and how fast, where there is one
#   make lint format bench clean

SHELL := /bin/bash
.DEFAULT_GOAL := demo
.PHONY: bench-long demo docs test test-cluster test-connect test-exports test-feeds test-store test-fast test-long test-lowest lint format bench bench-gpu clean

# A Spark, a Python path or a server that belongs to something else must not leak in.
unexport SPARK_HOME SPARK_CONF_DIR SPARK_REMOTE SPARK_MASTER MASTER PYSPARK_SUBMIT_ARGS
unexport PYSPARK_PYTHON PYSPARK_DRIVER_PYTHON PYTHONPATH PYTHONHOME VIRTUAL_ENV
# Tests start many Pythons, each of which would compile every module again.
unexport PYTHONDONTWRITEBYTECODE

READY := .venv/.ready
LOWEST := .venv-lowest/.ready
EXPORTS := .venv-exports/.ready
DOCS := .venv-docs/.ready
STORE := .venv-store/.ready
FEEDS := .venv-feeds/.ready
# Another Numba would throw away what ours has compiled, and ours what that has.
OLD_KERNELS = NUMBA_CACHE_DIR="$(CURDIR)/.venv-lowest/kernels"
# Spark finds its Java, and its workers' python3, through these two.
WITH_JAVA = JAVA_HOME="$$(tools/setup.sh java)" && export JAVA_HOME && PATH="$(CURDIR)/$(1)/bin:$$PATH"
# Tests start many JVMs for a few rows each, for which better code would come too late: compiling
# less brings each start from 16 s of processor time down to 9 s.
TESTING = $(call WITH_JAVA,$(1)) JDK_JAVA_OPTIONS="-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
# Two processes at a time, each with a Spark session of its own. Three where there is none: slow tests wait
# now and then, which is worth the start of another process; quick ones do not.
SPREAD := -n 2 --dist worksteal
SPREAD_MORE := -n 3 --dist worksteal
NO_JVM := not spark and not cluster and not connect and not store and not feeds

$(READY): pyproject.toml constraints.txt tools/setup.sh
	@tools/setup.sh python .venv constraints.txt dev
	@echo "Compiling kernels (once)."
	@.venv/bin/python -m holdfast.warm
	@touch $@

$(LOWEST): pyproject.toml constraints-lowest.txt tools/setup.sh
	@tools/setup.sh python .venv-lowest constraints-lowest.txt test
	@echo "Compiling kernels (once)."
	@$(OLD_KERNELS) .venv-lowest/bin/python -m holdfast.warm
	@touch $@

# Other people's tools, which have no place beside what Holdfast needs.
$(EXPORTS): constraints-exports.txt $(READY)
	@.venv/bin/python -m venv --clear .venv-exports
	@echo "Installing into .venv-exports (about 1 GB; some minutes, once)."
	@.venv-exports/bin/pip --disable-pip-version-check --no-input install --quiet --no-deps --requirement constraints-exports.txt
	@touch $@

$(DOCS): constraints-docs.txt $(READY)
	@.venv/bin/python -m venv --clear .venv-docs
	@.venv-docs/bin/pip --disable-pip-version-check --no-input install --quiet --requirement constraints-docs.txt
	@touch $@

# Where it cannot be installed its tests are skipped, with the reason.
$(STORE): tools/setup.sh
	@mkdir -p .venv-store
	@if tools/setup.sh store .venv-store; then touch $@; fi

$(FEEDS): tools/setup.sh
	@mkdir -p .venv-feeds
	@if tools/setup.sh feeds .venv-feeds; then touch $@; fi

demo: $(READY)
	@$(call WITH_JAVA,.venv) tools/demo.sh

# A process can hold one kind of Spark session, so the two other kinds get one each.
test: $(READY)
	.venv/bin/pytest tests $(SPREAD_MORE) -m "$(NO_JVM) and not long" --ignore=tests/cluster --ignore=tests/connect
	$(call TESTING,.venv) pytest tests $(SPREAD) -m "spark and not long" --ignore=tests/cluster --ignore=tests/connect
	$(MAKE) --no-print-directory -j2 test-cluster test-connect

test-cluster test-connect: test-%: $(READY)
	$(call TESTING,.venv) pytest -q tests/$*

test-fast: $(READY)
	HOLDFAST_EXAMPLES=$${HOLDFAST_EXAMPLES:-5} .venv/bin/pytest tests $(SPREAD) -m "$(NO_JVM) and not slow and not long" --ignore=tests/cluster --ignore=tests/connect

# HOLDFAST_EXAMPLES says how many tables.
test-long: $(READY)
	$(call TESTING,.venv) HOLDFAST_EXAMPLES=$${HOLDFAST_EXAMPLES:-300} pytest tests $(SPREAD) -m "(law or long) and not store and not feeds" --ignore=tests/cluster --ignore=tests/connect

test-lowest: $(LOWEST)
	$(call TESTING,.venv-lowest) $(OLD_KERNELS) pytest tests $(SPREAD) -m "spark and not long" --ignore=tests/cluster --ignore=tests/connect
	$(call TESTING,.venv-lowest) $(OLD_KERNELS) pytest tests/cluster
	$(call TESTING,.venv-lowest) $(OLD_KERNELS) pytest tests/connect

# A cluster has a process of its own, as it has in the other tests.
test-store: $(READY) $(STORE)
	.venv/bin/pytest tests/objects -m "not cluster"
	$(call TESTING,.venv) pytest tests/objects -m cluster

test-feeds: $(READY) $(FEEDS)
	$(call TESTING,.venv) HOLDFAST_FEEDS="$(CURDIR)/.venv-feeds" pytest tests/feeds -m feeds

test-exports: $(EXPORTS)
	HOLDFAST_EXPORTS="$(CURDIR)/.venv-exports/bin/python" .venv/bin/pytest tests/export

# A page that is missing in mkdocs.yml, or a link that leads nowhere, is an error.
docs: $(DOCS)
	.venv-docs/bin/mkdocs build --strict --quiet

lint: $(READY)
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports

format: $(READY)
	.venv/bin/ruff check --fix .
	.venv/bin/ruff format .

# A million tax records, also counted: half an hour. Batches of four million rows: some minutes.
bench-long: $(READY)
	$(call WITH_JAVA,.venv) python -m benchmarks.bench_denials long
	$(call WITH_JAVA,.venv) python -m benchmarks.bench_tables long
	$(call WITH_JAVA,.venv) python -m benchmarks.bench_scale long
	$(call WITH_JAVA,.venv) python -m benchmarks.bench_feeds 1 500

bench: $(READY)
	$(call WITH_JAVA,.venv) python -m benchmarks

# The Python that has CuPy: GPU=python3, for example, where it comes with the machine.
GPU ?= .venv/bin/python
bench-gpu:
	@if [ "$(GPU)" = .venv/bin/python ]; then $(MAKE) --no-print-directory $(READY); fi
	PYTHONPATH=src $(GPU) -m pytest tests/kernels/test_gpu.py tests/kernels/test_comparisons.py tests/tasks/test_devices.py tests/flow/test_devices.py
	PYTHONPATH=src $(GPU) -m benchmarks gpu

clean:
	rm -rf .venv .venv-lowest .venv-exports .venv-docs .venv-store .venv-feeds site dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
