-- The temporary database in which the lines of an index are sorted.

-- name: create_line_table
CREATE TABLE line (text BLOB)

-- name: add_line
INSERT INTO line (text) VALUES (:text)

-- name: sorted_lines
-- The lines in the order of their bytes, with duplicates.
SELECT text FROM line ORDER BY text
