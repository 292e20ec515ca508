-- The statements about the texts of stored bodies, over the views of the store.

-- name: kept
-- The texts that are kept of bodies. {numbers} is a list of numbers.
SELECT body_id, read_as, data FROM main_texts_by_id WHERE body_id IN ({numbers})
