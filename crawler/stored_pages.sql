-- name: pages
-- The pages that meet the user's condition, which has lines of its own because it may end in a comment.
SELECT url_id, url, status, content_type, fetched_at, depth, title, description, keywords, canonical_url, noindex,
       nofollow, body_sha256, directives, charset, headers, etag, last_modified
FROM pages WHERE (
{where}
)

-- name: links_from
-- The links of the page :number.
SELECT v.source, v.target, v.anchor, v.rel, l.follow
FROM links_by_id l JOIN links v ON v.source_id = l.source_id AND v.target_id = l.target_id
WHERE l.source_id = :number

-- name: links_to
-- The links of other pages to the URL :number.
SELECT v.source, v.target, v.anchor, v.rel, l.follow
FROM links_by_id l JOIN links v ON v.source_id = l.source_id AND v.target_id = l.target_id
WHERE l.target_id = :number AND l.source_id <> l.target_id
