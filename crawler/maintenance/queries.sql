-- name: sites
SELECT site FROM sites;

-- name: urls_of_site
SELECT url_id, url, reason_code FROM urls WHERE site = :site ORDER BY url_id;

-- name: all_urls
SELECT url_id, url, reason_code FROM urls;

-- name: url
SELECT url_id, url, reason_code FROM urls WHERE url_id = :url_id;
