# Every target does its own set-up; cargo, make and a C compiler are all that is needed.
CARGO ?= cargo

.PHONY: demo count test bench check

# Writes 200,000 orders with their payments and shipments, and joins them.
demo:
	$(CARGO) build --release --package flowjoin-examples --example demo_data --example fulfilment
	$(CARGO) run --quiet --release --package flowjoin-examples --example demo_data -- examples/out/in
	$(CARGO) run --quiet --release --package flowjoin-examples --example fulfilment -- examples/out/in examples/out
	@wc -l examples/out/*.jsonl

# Counts the demo's outputs anew, from its inputs alone.
count:
	python3 scripts/count_demo.py examples/out

# All tests: unit, integration, documentation, and those of the examples; and random histories once more, with a crash of
# the flow after each step.
test:
	$(CARGO) test --workspace
	FLOWJOIN_CRASHES=1 FLOWJOIN_CASES=50 $(CARGO) test --test oracle

# The workloads, and the hand-written loop that they are measured against.
bench:
	$(CARGO) bench --bench workloads -- --size default
	$(CARGO) bench --bench limit -- --size default

# What a change has to pass besides the tests.
check:
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets -- -D warnings
	RUSTDOCFLAGS="-D warnings" $(CARGO) doc --workspace --no-deps
