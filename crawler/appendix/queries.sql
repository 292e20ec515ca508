-- The tables of a data appendix, over the views of the store.

-- name: rows
-- The rows of a view, in a fixed order. The last column has the directives of the row's page.
SELECT {columns}, {directives} AS page_directives FROM {view} AS kept ORDER BY {order}

-- name: frame
-- The sampling frame, with the stratum of each URL. :per is site if each site is a stratum.
SELECT f.url, f.site, CASE WHEN :per = 'site' THEN f.site ELSE '' END AS stratum, f.url_id FROM sample_frame f ORDER BY f.url

-- name: exclusions
SELECT reason_code, count(*) AS urls, count(DISTINCT site_id) AS sites
FROM urls_by_id WHERE state = 'excluded' GROUP BY reason_code ORDER BY reason_code

-- name: robots_texts
SELECT DISTINCT version_sha256, body FROM robots_versions WHERE version_sha256 IS NOT NULL
