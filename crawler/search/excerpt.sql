-- The database in memory that marks the words of a query. The row IDs below :texts are those of short texts (`short`);
-- the others are those of a piece of each long text (`long`).

-- name: create_table
CREATE VIRTUAL TABLE t USING fts5(short, long, tokenize = '{tokenizer}')

-- name: insert
INSERT INTO t (rowid, short, long) VALUES (?, ?, ?)

-- name: highlight
-- The short texts with a match, marked.
SELECT rowid, highlight(t, 0, char(2), char(3)) FROM t WHERE t MATCH :match AND rowid < :texts

-- name: snippet
-- Excerpts of the pieces with a match, marked, by the numbers of the short texts.
SELECT rowid - :texts, snippet(t, 1, char(2), char(3), '…', {words}) FROM t WHERE t MATCH :match AND rowid >= :texts
