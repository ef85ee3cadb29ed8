# The commands of this project. `make` alone lists them.
.POSIX:
.PHONY: help setup doctor demo ask demo-clean test-fast test soak bench lint docs pictures lock

help: ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

setup: ## Name your three machines: tries each login and writes inventories/home
	@.ci/bootstrap deploy
	@.venv/bin/python -m inventories.setup

demo: ## Deploy three demo hosts on this machine and search their files
	@.ci/bootstrap demo
	@DEMO_WHEELS="$$(.ci/wheels)" .venv/bin/ansible-playbook -i inventories/demo playbooks/demo.yml
	@.venv/bin/python -m tests.demo show

ask: ## Ask the demo's deployed server, e.g. make ask Q="where does the landlord talk about pets"
	@.venv/bin/python -m tests.demo ask -- "$$Q"

demo-clean: ## Stop the demo and remove all of it
	@if [ -d .demo ]; then .ci/bootstrap demo && .venv/bin/python -m tests.demo clean; fi
	@echo "The demo is gone. Its packages stay for next time, in .venv and ~/.cache/hermes-digup."

doctor: ## Check all machines; REPORT=1 also writes doctor-report.json, without names, for a bug report
	@.ci/bootstrap deploy
	@.venv/bin/ansible-playbook playbooks/doctor.yml $${REPORT:+-e doctor_report_path=doctor-report.json -e doctor_redact=true}

test-fast: ## Under a minute: form, arrows between the rooms, generated documents, DigUp's own results
	@.ci/bootstrap dev
	@.ci/test-fast

test: ## Lint, then run every test that this machine can
	@.ci/bootstrap dev
	@.ci/test

soak: ## Run the same tests with far larger counts, and three hosts with all that can happen (hours)
	@.ci/bootstrap dev
	@SOAK=1 PATH="$$PWD/.venv/bin:$$PATH" .venv/bin/pytest -q --timeout 7200 tests/unit tests/golden \
	  tests/integration/publishing tests/integration/sync tests/integration/playbooks
	@[ "$$(id -u)" != 0 ] || SOAK=1 PATH="$$PWD/.venv/bin:$$PATH" molecule/run tailnet

bench: ## Measure the search against its goals and its peers (8 GB of disk; wants a machine that does nothing else)
	@.ci/bootstrap dev
	@.venv/bin/python -m tests.bench.search

lint: ## Check form: ruff, mypy, yamllint, ansible-lint, shellcheck
	@.ci/bootstrap dev
	@.ci/lint

docs: ## Write the generated parts of the documents anew
	@.ci/bootstrap dev
	@.venv/bin/python docs/generate.py
	@.venv/bin/python docs/messages.py
	@.venv/bin/python docs/draw.py
	@.venv/bin/python docs/plot.py

pictures: ## Draw the documents' pictures of terminals anew, from the demo (and deploy it if it is not there)
	@.ci/bootstrap demo
	@[ -e .demo/raspberrypi/.local/bin/hermes-digup ] || $(MAKE) demo
	@.venv/bin/python docs/pictures.py

lock: ## Pin all versions anew (needs the network)
	@.ci/bootstrap deploy
	@.ci/lock
