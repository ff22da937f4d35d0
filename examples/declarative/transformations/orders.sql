-- The rows that the table has: of each key the last change, unless that is a delete.
CREATE MATERIALIZED VIEW orders AS
SELECT * EXCEPT (op, position, age)
FROM (
    SELECT *, row_number() OVER (PARTITION BY id ORDER BY position DESC) AS age
    FROM orders_changes
)
WHERE age = 1 AND op IN ('r', 'c', 'u')
