#!/usr/bin/env python3
"""Counts from the inputs of `make demo` what its outputs should be, and compares: count_demo.py [DIRECTORY]"""
import json, sys
from pathlib import Path

at = Path(sys.argv[1] if len(sys.argv) > 1 else "examples/out")
read = lambda name: [json.loads(line) for line in open(at / f"{name}.jsonl")]
orders, paid, sent = ({row["order_id"]: row for row in read(f"in/{name}")} for name in ("orders", "payments", "shipments"))
table = {}
for change in read("fulfilled"):
    table.pop(change["order_id"], None)
    if change.pop("op") == "+U": table[change["order_id"]] = change
expected = {key: dict(order_id=key, amount=row["amount"], method=paid[key]["method"], status=sent.get(key, {}).get("status"))
            for key, row in orders.items() if key in paid}
unpaid, stray = ({row["order_id"] for row in read(name)} for name in ("unpaid", "stray-payments"))
checks = {"fulfilled": (expected, table), "unpaid": (orders.keys() - paid.keys(), unpaid), "stray payments": (paid.keys() - orders.keys(), stray)}
for name, (want, got) in checks.items():
    print(f"{name:15} expected {len(want):7,}  got {len(got):7,}  {'equal' if want == got else 'DIFFERENT'}")
sys.exit(any(want != got for want, got in checks.values()))
