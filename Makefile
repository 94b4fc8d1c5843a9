SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo test wheel docs release fmt bench bench-quick bench-models stability costmodel table generated-rules clean

# Models to bench, as a pattern of names: `make bench ONLY='ppocr-*'`.
ONLY ?= *
# Wall time that each optimization may take; empty for the default of the command.
BUDGET ?=
# Threads per operator; empty for as many as the runtime uses by itself.
THREADS ?=
export BUDGET THREADS
threads = $(if $(THREADS),--threads $(THREADS))

help: ## this text
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

demo: ## set up, build, and optimize a real model (PP-OCRv4 text recognition) into demo/
	scripts/demo.sh

test: ## set up, then format check, lints and all tests
	scripts/test.sh

wheel: ## build the Python package into dist/, and test it in an empty environment
	scripts/wheel.sh

docs: ## build the book of the documentation into target/book/book, and check its links
	scripts/docs.sh

release: ## check dependencies, build the command twice and compare, pack everything into dist/
	scripts/release.sh

fmt: ## format the sources
	cargo fmt --all

bench-models: ## collect the benchmark corpus in models/ (about 6 GB)
	scripts/setup.sh bench
	.venv/bin/python bench/models.py '$(ONLY)'

bench: ## optimize the whole corpus, time every result independently, write bench/results/corpus.json
	scripts/setup.sh bench
	scripts/with-runtime.sh .venv/bin/python bench/run.py '$(ONLY)' $(threads)

bench-quick: ## the same for the three PP-OCR models only, into target/bench-quick.json
	scripts/setup.sh bench
	scripts/with-runtime.sh .venv/bin/python bench/run.py 'ppocr-*' $(threads) --json target/bench-quick.json

stability: ## five runs with fresh stores on VGG-19 and PP-OCR recognition
	scripts/setup.sh bench
	scripts/with-runtime.sh bench/stability.sh light-vgg19-random ppocr-rec

costmodel: ## predicted against measured times on twelve models
	scripts/setup.sh bench
	scripts/with-runtime.sh .venv/bin/python bench/costmodel $(threads)

table: ## render the README results section, docs/results.md and docs/results.svg from bench/results
	python3 bench/table.py

generated-rules: ## find rules by machine again and write rules/generated.rules (a minute)
	mkdir -p target
	cargo run --release -p regraft-cli -- rules generate taso --size 3 -o target/taso.pairs
	cargo run --release -p regraft-cli -- rules prune taso target/taso.pairs --operators 2 --format rules -o rules/generated.rules

clean: ## remove what demo and bench left behind (not .venv, not target)
	rm -rf demo models
