-- Tables of TPC-H, made up, and queries of it with their default parameters, in Spark's words; tpch.py reads this file.

-- table region
SELECT
  id AS r_regionkey,
  element_at(array('AFRICA', 'AMERICA', 'ASIA', 'EUROPE', 'MIDDLE EAST'), int(id + 1)) AS r_name
FROM range(5)

-- table nation
SELECT
  id AS n_nationkey,
  concat('NATION ', id) AS n_name,
  id % 5 AS n_regionkey
FROM range(25)

-- table customer
SELECT
  id AS c_custkey,
  concat('Customer#', id) AS c_name,
  id % 25 AS c_nationkey,
  element_at(array('AUTOMOBILE', 'BUILDING', 'FURNITURE', 'HOUSEHOLD', 'MACHINERY'), int(id % 5 + 1)) AS c_mktsegment
FROM range(0, {customers}, 1, 4)

-- table supplier
SELECT
  id AS s_suppkey,
  concat('Supplier#', id) AS s_name,
  id % 25 AS s_nationkey
FROM range(0, {customers} div 15, 1, 4)

-- table orders
SELECT
  id AS o_orderkey,
  pmod(hash(id), {customers}) AS o_custkey,
  double(pmod(hash(id, 1), 500000)) AS o_totalprice,
  date_add(date '1992-01-01', pmod(hash(id, 2), 2405)) AS o_orderdate,
  concat(pmod(hash(id, 3), 5) + 1, '-PRIORITY') AS o_orderpriority,
  0 AS o_shippriority
FROM range(0, {customers} * 10, 1, 4)

-- table lineitem
SELECT
  id div 4 AS l_orderkey,
  pmod(hash(id, 1), {customers} div 15) AS l_suppkey,
  double(pmod(hash(id, 2), 50) + 1) AS l_quantity,
  double(pmod(hash(id, 3), 100000)) AS l_extendedprice,
  pmod(hash(id, 4), 11) / 100D AS l_discount,
  pmod(hash(id, 5), 9) / 100D AS l_tax,
  element_at(array('R', 'A', 'N'), int(id % 3 + 1)) AS l_returnflag,
  element_at(array('O', 'F'), int(id % 2 + 1)) AS l_linestatus,
  date_add(date '1992-01-02', pmod(hash(id, 6), 2520)) AS l_shipdate,
  date_add(date '1992-02-01', pmod(hash(id, 7), 2450)) AS l_commitdate,
  date_add(date '1992-01-03', pmod(hash(id, 8), 2550)) AS l_receiptdate,
  element_at(array('MAIL', 'SHIP', 'AIR', 'RAIL', 'TRUCK', 'FOB'), int(pmod(hash(id, 9), 6) + 1)) AS l_shipmode
FROM range(0, {customers} * 40, 1, 4)

-- query Q1
SELECT l_returnflag, l_linestatus, sum(l_quantity), sum(l_extendedprice), sum(l_extendedprice * (1 - l_discount)), sum(l_extendedprice * (1 - l_discount) * (1 + l_tax)),
  avg(l_quantity), avg(l_extendedprice), avg(l_discount), count(*) FROM lineitem
  WHERE l_shipdate <= date '1998-12-01' - interval 90 days GROUP BY 1, 2 ORDER BY 1, 2

-- query Q3
SELECT l_orderkey, sum(l_extendedprice * (1 - l_discount)) AS revenue, o_orderdate, o_shippriority FROM customer, orders, lineitem
  WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey AND o_orderdate < date '1995-03-15'
  AND l_shipdate > date '1995-03-15' GROUP BY 1, 3, 4 ORDER BY 2 DESC, 3 LIMIT 10

-- query Q5
SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue FROM customer, orders, lineitem, supplier, nation, region
  WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey
  AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA' AND o_orderdate >= date '1994-01-01'
  AND o_orderdate < date '1995-01-01' GROUP BY 1 ORDER BY 2 DESC

-- query Q6
SELECT sum(l_extendedprice * l_discount) FROM lineitem WHERE l_shipdate >= date '1994-01-01'
  AND l_shipdate < date '1995-01-01' AND l_discount BETWEEN 0.05 AND 0.07 AND l_quantity < 24

-- query Q12
SELECT l_shipmode, sum(CASE WHEN o_orderpriority < '3' THEN 1 ELSE 0 END) FROM orders, lineitem
  WHERE o_orderkey = l_orderkey AND l_shipmode IN ('MAIL', 'SHIP') AND l_commitdate < l_receiptdate
  AND l_shipdate < l_commitdate AND l_receiptdate >= date '1994-01-01' AND l_receiptdate < date '1995-01-01' GROUP BY 1

-- query Q18
SELECT c_name, c_custkey, o_orderkey, o_orderdate, o_totalprice, sum(l_quantity) FROM customer, orders, lineitem
  WHERE o_orderkey IN (SELECT l_orderkey FROM lineitem GROUP BY 1 HAVING sum(l_quantity) > 180) AND c_custkey = o_custkey
  AND o_orderkey = l_orderkey GROUP BY 1, 2, 3, 4, 5 ORDER BY 5 DESC, 4 LIMIT 100
