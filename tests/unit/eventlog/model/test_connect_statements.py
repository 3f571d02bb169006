"""What the request of an operation says: SQL as it was written, and the line of the client that Spark has."""

from spark_app.eventlog.model.call_sites import CallSite
from spark_app.eventlog.model.connect_statements import MAX_TEXT, Statement, parse

SQL = r"""sql_command {
  input {
    common {
      plan_id: 5
    }
    sql {
      query: "SELECT \'Zo\303\253\' AS owner,\n \"a\\b\" AS text FROM orders"
    }
  }
}
"""
PLAN = """common {
  plan_id: 2
}
aggregate {
  input {
    with_columns {
      aliases {
        expr {
          common {
            origin {
              python_origin {
                fragment: "__mul__"
                call_site: "/srv/job.py:20"
              }
            }
          }
        }
      }
    }
  }
  grouping_expressions {
    common {
      origin {
        python_origin {
          fragment: "alias"
          call_site: "/srv/job.py:21"
        }
      }
    }
  }
  aggregate_expressions {
    common {
      origin {
        python_origin {
          fragment: "alias"
          call_site: "/srv/a b.py:22"
        }
      }
    }
  }
}
"""
FLOW = """pipeline_command {
  define_flow {
    dataflow_graph_id: "12f38930"
    flow_name: "orders"
    target_dataset_name: "orders"
    source_code_location {
      file_name: "/srv/transformations/orders.py"
      line_number: 4
    }
  }
}
"""


def test_sql_is_as_it_was_written() -> None:
    """Without the escapes of the text format, of which letters outside of ASCII have several."""
    assert parse(SQL) == Statement("sql", None, "SELECT 'Zoë' AS owner,\n \"a\\b\" AS text FROM orders")


def test_a_plan_has_the_outermost_line_of_the_client() -> None:
    """Expressions of the input come first in the text, and were written first."""
    assert parse(PLAN) == Statement("aggregate", call_site=CallSite("aggregate", "/srv/a b.py", "22"))


def test_a_flow_of_a_pipeline_has_its_name_and_the_line_of_its_decorator() -> None:
    """What `spark-pipelines run` registers before it starts."""
    site = CallSite("define_flow", "/srv/transformations/orders.py", "4")
    assert parse(FLOW) == Statement("define_flow", "orders", call_site=site)


def test_only_the_beginning_of_a_long_statement_is_kept() -> None:
    """Spark logs up to 64 Ki characters of each."""
    sql = parse('sql {\n  query: "' + r"\303\253" * 60_000 + '"\n}\n').sql
    assert sql is not None
    assert (len(sql), set(sql)) == (MAX_TEXT // 2, {"ë"})


def test_a_text_that_is_no_request_is_unknown() -> None:
    """As of a future version of Spark."""
    assert parse("") == parse("what?") == Statement()
