-- name: page
-- What decides whether the page :number is shown, and what its text is read from.
SELECT url, title, status, fetched_at, content_type, charset, directives FROM pages WHERE url_id = :number

-- name: preferences
-- The preferences about use of the page :number.
SELECT scheme, category, value, source, line, text FROM preferences WHERE url_id = :number
