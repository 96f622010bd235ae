#!/usr/bin/env python3
"""Reads every Delta table below a folder with deltalake, polars and DuckDB, and writes what each of them sees.

usage: interop.py WAREHOUSE OUT

For each engine and table it writes OUT/<engine>/<table>.jsonl, where <table> is the table's path below WAREHOUSE with "."
for "/": one JSON object a row, in no order. Values are written as `varve cat --json` writes them: decimals as text with
their scale, dates and timestamps as ISO text, binaries as upper-case hex, maps as arrays of key and value. Lines are to be
compared as JSON, and maps as sets of entries. The exit code is 0 only if every engine read every table.
"""

import json
import math
import os
import pathlib
import struct
import sys
import traceback

import deltalake
import duckdb
import duckdb_extension_delta
import polars
import pyarrow as pa


def tables(warehouse):
    """The folders that have a Delta log, not looking inside tables."""
    for folder, inner, _ in os.walk(warehouse):
        if "_delta_log" in inner:
            inner.clear()
            yield pathlib.Path(folder)
        inner.sort()


def read_deltalake(path):
    table = deltalake.DeltaTable(str(path))
    if "deletionVectors" in (table.protocol().reader_features or []):  # its Arrow datasets refuse these
        return pa.table(deltalake.QueryBuilder().register("t", table).execute("SELECT * FROM t"))
    return table.to_pyarrow_table()


def read_polars(path):
    return polars.scan_delta(str(path)).collect().to_arrow()


def duckdb_connection():
    """DuckDB with the extension that came as a package: nothing is downloaded."""
    connection = duckdb.connect(config={"allow_unsigned_extensions": "true", "autoinstall_known_extensions": "false"})
    package = pathlib.Path(duckdb_extension_delta.__file__).parent
    extension = package / "extensions" / f"v{duckdb.__version__}" / "delta.duckdb_extension"
    connection.load_extension(str(extension))
    connection.execute("SET TimeZone = 'UTC'")
    return connection


def duckdb_reader():
    connection = duckdb_connection()
    return lambda path: connection.execute("SELECT * FROM delta_scan(?)", [str(path)]).to_arrow_table()


def number(value, bits):
    """The shortest text that reads back as the same number, in Go's %g form; NaN and the infinities as text."""
    if math.isnan(value):
        return '"NaN"'
    if math.isinf(value):
        return '"Infinity"' if value > 0 else '"-Infinity"'
    for precision in range(17):
        text = f"{value:.{precision}e}"
        if bits == 64 and float(text) == value:
            break
        if bits == 32 and struct.pack("f", float(text)) == struct.pack("f", value):
            break
    mantissa, exponent = text.split("e")
    sign, digits, exponent = "-" * mantissa.startswith("-"), mantissa.strip("-").replace(".", ""), int(exponent)
    if exponent < -4 or exponent >= 6:
        fraction = "." + digits[1:] if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{fraction}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    whole, fraction = digits[: exponent + 1].ljust(exponent + 1, "0"), digits[exponent + 1 :]
    return f"{sign}{whole}.{fraction}" if fraction else f"{sign}{whole}"


def encode(value, kind):
    """The JSON text of a value of an Arrow type."""
    t = pa.types
    if value is None:
        return "null"
    if t.is_dictionary(kind):
        return encode(value, kind.value_type)
    if t.is_boolean(kind) or t.is_integer(kind):
        return json.dumps(value)
    if t.is_floating(kind):
        return number(value, 64 if t.is_float64(kind) else 32)
    if t.is_decimal(kind):
        return json.dumps(format(value, "f"))
    if t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind):
        return json.dumps(value, ensure_ascii=False)
    if t.is_binary(kind) or t.is_large_binary(kind) or t.is_binary_view(kind) or t.is_fixed_size_binary(kind):
        return json.dumps(value.hex().upper())
    if t.is_date(kind):
        return json.dumps(value.isoformat())
    if t.is_timestamp(kind):
        return json.dumps(value.strftime("%Y-%m-%dT%H:%M:%S.%f").rjust(26, "0") + ("Z" if kind.tz else ""))
    if t.is_map(kind):
        entries = ({"key": k, "value": v} for k, v in value)
        return encode(list(entries), pa.list_(pa.struct([("key", kind.key_type), ("value", kind.item_type)])))
    if t.is_struct(kind):
        return encode_row((f.name, f.type, value[f.name]) for f in kind)
    if t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind) or t.is_list_view(kind):
        return "[" + ",".join(encode(v, kind.value_type) for v in value) + "]"
    raise TypeError(f"no encoding for the Arrow type {kind}")


def encode_row(members):
    return "{" + ",".join(f"{json.dumps(name, ensure_ascii=False)}:{encode(value, kind)}" for name, kind, value in members) + "}"


def write(table, path):
    """Writes a row a line."""
    columns = [column.to_pylist() for column in table.columns]
    with open(path, "w", encoding="utf-8") as out:
        for row in zip(*columns) if columns else ():
            out.write(encode_row(zip(table.schema.names, table.schema.types, row)) + "\n")


def main(warehouse, out):
    found = list(tables(warehouse))
    failures = 0 if found else 1
    if not found:
        print(f"interop: no Delta table below {warehouse}", file=sys.stderr)
    for engine, read in {"deltalake": read_deltalake, "polars": read_polars, "duckdb": duckdb_reader()}.items():
        (pathlib.Path(out) / engine).mkdir(parents=True, exist_ok=True)
        for table in found:
            name = ".".join(table.relative_to(warehouse).parts)
            try:
                write(read(table), pathlib.Path(out) / engine / f"{name}.jsonl")
            except Exception:  # one unreadable table must not hide the others
                failures += 1
                print(f"interop: {engine}: {name}:\n{traceback.format_exc()}", file=sys.stderr)
    print(f"interop: {len(found)} tables, {failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    status = main(sys.argv[1], sys.argv[2])
    sys.stdout.flush()
    os._exit(status)  # the engines' threads may abort an interpreter that ends while they run
