-- name: page
-- What decides whether the page :number is shown, and what its text is read from.
SELECT p.title, p.fetched_at, p.directives, p.body_id, p.charset, p.content_type, s.site
FROM pages_by_id p JOIN sites_by_id s ON s.site_id = p.site_id WHERE p.url_id = :number

-- name: preferences
-- The preferences about use of the page :number.
SELECT scheme, category, value, source, line, text FROM preferences WHERE url_id = :number
