-- Serves. Replies {"serves", first, second or "-"}, or {"serves"} where there is
-- no record. Changes nothing, and does not ask which set the client's is.
local record = call('GET', KEYS[1])
local stop = open(record, true)
if stop then return stop end
if not record then return {'serves'} end
return {'serves', first, second}
