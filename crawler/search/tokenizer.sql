-- The database in memory that tells what the tokenizer of FTS5 makes of a character.

-- name: create_tables
CREATE VIRTUAL TABLE t USING fts5(x, tokenize = '{tokenizer}');
CREATE VIRTUAL TABLE word USING fts5vocab(t, 'instance');

-- name: put_text
INSERT OR REPLACE INTO t (rowid, x) VALUES (:code, :text)

-- name: terms
-- The words of the text with the number :code.
SELECT term FROM word WHERE doc = :code
