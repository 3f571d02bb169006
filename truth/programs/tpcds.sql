-- Tables of TPC-DS, made up, and queries of it with parameters of its documents, in Spark's words; tpcds.py reads this file.

-- table date_dim
SELECT
  2450815 + id AS d_date_sk,
  year(date_add(date '1998-01-01', int(id))) AS d_year,
  month(date_add(date '1998-01-01', int(id))) AS d_moy
FROM range(1826)

-- table item
SELECT
  id AS i_item_sk,
  id % 300 AS i_brand_id,
  concat('brand ', id % 300) AS i_brand,
  pmod(hash(id), 200) AS i_manufact_id,
  pmod(hash(id, 1), 50) AS i_manager_id,
  id % 10 AS i_category_id,
  concat('category ', id % 10) AS i_category
FROM range(18000)

-- table store_sales
SELECT
  2450815 + pmod(hash(id), 1826) AS ss_sold_date_sk,
  pmod(hash(id, 1), 18000) AS ss_item_sk,
  id AS ss_ticket_number,
  pmod(hash(id, 2), 20000) / 100D AS ss_ext_sales_price
FROM range(0, {sales}, 1, 4)

-- query Q3
SELECT d_year, i_brand_id, i_brand, sum(ss_ext_sales_price) AS sum_agg FROM date_dim, store_sales, item
  WHERE d_date_sk = ss_sold_date_sk AND ss_item_sk = i_item_sk AND i_manufact_id = 128 AND d_moy = 11
  GROUP BY 1, 2, 3 ORDER BY 1, 4 DESC, 2 LIMIT 100

-- query Q42
SELECT d_year, i_category_id, i_category, sum(ss_ext_sales_price) FROM date_dim, store_sales, item
  WHERE d_date_sk = ss_sold_date_sk AND ss_item_sk = i_item_sk AND i_manager_id = 1 AND d_moy = 11 AND d_year = 2000
  GROUP BY 1, 2, 3 ORDER BY 4 DESC, 1, 2, 3 LIMIT 100

-- query Q52
SELECT d_year, i_brand_id, i_brand, sum(ss_ext_sales_price) AS ext_price FROM date_dim, store_sales, item
  WHERE d_date_sk = ss_sold_date_sk AND ss_item_sk = i_item_sk AND i_manager_id = 1 AND d_moy = 11 AND d_year = 2000
  GROUP BY 1, 2, 3 ORDER BY 1, 4 DESC, 2 LIMIT 100
