#!/usr/bin/env python3
"""Lets a test read, query and change Delta tables with Spark, deltalake, polars and DuckDB.

usage: interop_server.py JARS

JARS is the folder of Delta's jars for Spark. One JSON object a line comes in on the standard input, and one goes out on the
standard output for each: {"id", "verb", …} is answered by {"id", …} or {"id", "error"}. Requests are served side by side, so
answers come in no order. Spark starts with the process and stays warm. The end of the input ends everything.

Engines are spark, deltalake (its query engine), pyarrow (deltalake's Arrow dataset, which knows no deletion vectors), duckdb
and polars. A condition is {"column", "op", "value", "type"}: op compares as SQL does, type is Spark's name of the type.

  read     engine path [version]           rows: one JSON text a row, as interop.py writes them, in no order
  find     engine path where               rows that fulfil a condition; files: how many data files are read for them
  changes  engine path from to             rows: the change feed of the versions, without the time of the commit
  history  engine path                     versions: version, timestamp, operation, parameters and metrics of each commit
  sql      statements [settings]           runs statements in a session of Spark
  insert   path values                     appends rows with DuckDB, given as the list of an INSERT
  change   path steps                      changes a table with deltalake; a step is [operation, arguments]
"""

import concurrent.futures
import json
import operator
import os
import pathlib
import re
import sys
import tempfile
import threading

import deltalake
import duckdb
import polars
import pyarrow.compute
import pyarrow.dataset

import interop


def start_spark(jars, scratch):
    """A small Spark: two threads, little memory, and a compiler that is quick rather than good."""
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    import pyspark.sql

    settings = {
        "spark.master": "local[2]",
        "spark.driver.memory": "1536m",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraClassPath": f"{jars}/*",
        "spark.driver.extraJavaOptions": " ".join([
            "-XX:TieredStopAtLevel=1", "-XX:ReservedCodeCacheSize=256m", "-XX:+UseSerialGC", "-Duser.timezone=UTC",
            f"-Djava.io.tmpdir={scratch}",
        ]),
        "spark.local.dir": scratch,
        "spark.sql.warehouse.dir": f"{scratch}/warehouse",
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.adaptive.enabled": "false",
        "spark.sql.codegen.wholeStage": "false",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.databricks.delta.retentionDurationCheck.enabled": "false",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = pyspark.sql.SparkSession.builder
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("OFF")
    return spark


class Condition:
    """One comparison of a column with a value, for each engine in its own words."""

    def __init__(self, column, op, value, type):
        self.column, self.op, self.value, self.type = column, op, value, type

    def sql(self, types={}, quote='"'):
        return f"{quote}{self.column}{quote} {self.op} CAST('{self.value}' AS {types.get(self.type, self.type)})"

    def typed(self, table):
        """The value as Arrow has it, and the comparison."""
        kind = pyarrow.schema(table.schema().to_arrow()).field(self.column).type
        compare = {"=": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}[self.op]
        return pyarrow.compute.cast(pyarrow.scalar(self.value), kind), compare


class Spark:
    def __init__(self, jars, scratch):
        self.session = concurrent.futures.Future()
        threading.Thread(target=self.start, args=(jars, scratch), daemon=True).start()

    def start(self, jars, scratch):
        try:
            self.session.set_result(start_spark(jars, scratch))
        except BaseException as e:
            self.session.set_exception(e)

    def frame(self, path, **options):
        return self.session.result().read.format("delta").options(**options).load(path)

    def read(self, path, version):
        return self.frame(path, **({} if version is None else {"versionAsOf": version})).toArrow()

    def find(self, path, where):
        frame = self.frame(path).where(where.sql(quote="`"))
        return frame.toArrow(), len(frame.inputFiles())

    def changes(self, path, first, last):
        return self.frame(path, readChangeFeed="true", startingVersion=first, endingVersion=last).toArrow()

    def history(self, path):
        rows = self.session.result().sql(f"DESCRIBE HISTORY delta.`{path}`").collect()
        return [
            {
                "version": r.version, "timestamp": int(r.timestamp.timestamp() * 1000), "operation": r.operation,
                "parameters": r.operationParameters, "metrics": r.operationMetrics,
            }
            for r in rows
        ]

    def sql(self, statements, settings):
        session = self.session.result().newSession()
        for name, value in settings.items():
            session.conf.set(name, value)
        for statement in statements:
            session.sql(statement).collect()


class Deltalake:
    types = {"string": "varchar", "timestamp": "timestamptz", "timestamp_ntz": "timestamp"}

    def query(self, path, version, text):
        table = deltalake.DeltaTable(path, version=version)
        return pyarrow.table(deltalake.QueryBuilder().register("t", table).execute(text))

    def read(self, path, version):
        return self.query(path, version, "SELECT * FROM t")

    def find(self, path, where):
        text = f"SELECT * FROM t WHERE {where.sql(self.types)}"
        plan = str(self.query(path, None, "EXPLAIN ANALYZE " + text).to_pylist())
        return self.query(path, None, text), len(set(re.findall(r"[^\[, ]+\.parquet", plan)))

    def changes(self, path, first, last):
        return pyarrow.table(deltalake.DeltaTable(path).load_cdf(starting_version=first, ending_version=last))

    def history(self, path):
        return [
            {
                "version": h["version"], "timestamp": h["timestamp"], "operation": h["operation"],
                "parameters": h.get("operationParameters", {}), "metrics": h.get("operationMetrics", {}),
            }
            for h in deltalake.DeltaTable(path).history()
        ]


class Pyarrow:
    def dataset(self, path, version=None):
        return deltalake.DeltaTable(path, version=version).to_pyarrow_dataset()

    def read(self, path, version):
        return self.dataset(path, version).to_table()

    def find(self, path, where):
        value, compare = where.typed(deltalake.DeltaTable(path))
        where = compare(pyarrow.dataset.field(where.column), value)
        data = self.dataset(path)
        return data.to_table(filter=where), len(list(data.get_fragments(filter=where)))


class Polars:
    def read(self, path, version):
        return polars.scan_delta(path, version=version).collect().to_arrow()

    def find(self, path, where):
        value, compare = where.typed(deltalake.DeltaTable(path))
        frame = polars.scan_delta(path)
        literal = polars.lit(value.as_py(), dtype=frame.collect_schema()[where.column])
        frame = frame.filter(compare(polars.col(where.column), literal))
        plan = frame.explain()
        others = re.search(r"(\d+) other sources?", plan)
        return frame.collect().to_arrow(), len(re.findall(r"\.parquet", plan)) + int(others[1] if others else 0)


class Duckdb:
    types = {"string": "varchar", "timestamp": "timestamptz", "timestamp_ntz": "timestamp"}

    def __init__(self):
        self.root = interop.duckdb_connection()

    def read(self, path, version):
        which = "" if version is None else f", version => {version}"
        return self.root.cursor().execute(f"SELECT * FROM delta_scan('{path}'{which})").to_arrow_table()

    def find(self, path, where):
        text = f"SELECT * FROM delta_scan('{path}') WHERE {where.sql(self.types)}"
        plan = str(self.root.cursor().execute("EXPLAIN ANALYZE " + text).fetchall())
        return self.root.cursor().execute(text).to_arrow_table(), int(re.search(r"Scanning Files: (\d+)/\d+", plan)[1])

    def insert(self, path, values):
        cursor, name = self.root.cursor(), f"t{abs(hash(path))}"
        cursor.execute(f"ATTACH '{path}' AS {name} (TYPE delta)")
        cursor.execute(f"INSERT INTO {name}.main.{name} VALUES {values}")
        cursor.execute(f"DETACH {name}")


def rows_of(table, without=()):
    """The rows of an Arrow table as JSON texts."""
    table = table.drop_columns([name for name in without if name in table.schema.names])
    columns = [column.to_pylist() for column in table.columns]
    return [interop.encode_row(zip(table.schema.names, table.schema.types, row)) for row in zip(*columns)]


class Server:
    def __init__(self, jars, scratch):
        self.engines = {
            "spark": Spark(jars, scratch), "deltalake": Deltalake(), "pyarrow": Pyarrow(), "duckdb": Duckdb(), "polars": Polars(),
        }

    def answer(self, request):
        engine = self.engines.get(request.get("engine"))
        path = request.get("path")
        match request["verb"]:
            case "read":
                return {"rows": rows_of(engine.read(path, request.get("version")))}
            case "find":
                found, files = engine.find(path, Condition(**request["where"]))
                return {"rows": rows_of(found), "files": files}
            case "changes":
                changes = engine.changes(path, request["from"], request["to"])
                return {"rows": rows_of(changes, without=["_commit_timestamp"])}
            case "history":
                return {"versions": engine.history(path)}
            case "sql":
                self.engines["spark"].sql(request["statements"], request.get("settings") or {})
                return {}
            case "insert":
                self.engines["duckdb"].insert(path, request["values"])
                return {}
            case "change":
                for operation, arguments in request["steps"]:
                    change(self.engines["duckdb"].root, path, operation, **arguments)
                return {}
        raise ValueError(f"no verb {request['verb']}")


def change(connection, path, operation, **arguments):
    """Changes a table with deltalake. Rows are given as a DuckDB query."""
    if operation == "write":
        rows = connection.cursor().execute(arguments.pop("rows")).to_arrow_table()
        deltalake.write_deltalake(path, rows, **arguments)
        return
    table = deltalake.DeltaTable(path)
    if operation == "merge":
        rows = connection.cursor().execute(arguments["rows"]).to_arrow_table()
        merge = table.merge(rows, arguments["on"], source_alias="s", target_alias="t")
        for clause, condition in arguments["clauses"]:
            merge = getattr(merge, clause)(condition)
        merge.execute()
    elif operation == "compact":
        table.optimize.compact(**arguments)
    elif operation == "z_order":
        table.optimize.z_order(**arguments)
    else:
        getattr(table, operation)(**arguments)


def main(jars):
    out = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries and Spark print must not come between the answers
    lock = threading.Lock()

    def serve(server, line):
        request = json.loads(line)
        try:
            reply = server.answer(request)
        except BaseException as e:
            reply = {"error": f"{type(e).__name__}: {e}"[:4000]}
        with lock:
            print(json.dumps({"id": request["id"]} | reply), file=out, flush=True)

    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(8) as pool:
        server = Server(jars, scratch)
        for line in sys.stdin:
            pool.submit(serve, server, line)
        pool.shutdown()
        session = server.engines["spark"].session
        if session.done() and not session.exception():
            session.result().stop()


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
    os._exit(0)  # the threads of the engines may abort an interpreter that ends while they run
