-- The lines that the demonstration shows of its crawl: a fact, and a detail.

-- name: mirrors
SELECT site AS what, main_site AS detail FROM mirrors

-- name: forbidden
SELECT url AS what, reason AS detail FROM urls WHERE reason_code = 'robots' ORDER BY url LIMIT 5

-- name: not_kept
SELECT url AS what, reason AS detail FROM urls WHERE reason_code = 'noindex' LIMIT 3

-- name: redirects
SELECT url AS what, reason AS detail FROM urls WHERE state = 'redirected' ORDER BY url LIMIT 4

-- name: failed
SELECT url AS what, reason AS detail FROM urls WHERE state = 'failed' ORDER BY url LIMIT 4

-- name: most_linked
SELECT target AS what, count(*) || ' links' AS detail
FROM links GROUP BY target ORDER BY count(*) DESC, target LIMIT 4
