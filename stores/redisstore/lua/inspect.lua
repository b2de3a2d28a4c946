-- Inspect. Changes nothing. Replies {"state", counter or 0, 1 in quarantine,
-- holder...}, each holder {owner, mode, token, since, left, label}.
local got = call('MGET', KEYS[1], KEYS[2], KEYS[3])
local stop = open(got[1])
if stop then return stop end
open_counter(got[3])
local reply = {'state', known and number or 0, quarantine > 0 and 1 or 0}
local function add(owner, mode, t, s, e, l)
  if e > now then reply[#reply + 1] = {owner, mode, t, s, min(e - now, far - now), l} end
end
local text = got[2] or ''
if sub(text, 1, 1) == 'r' then
  for _, owner in ipairs(call('ZRANGE', other('ends'), 0, -1)) do
    local _, t, e, s, l = reader(owner)
    add(owner, 'r', t, s, e, l)
  end
elseif text ~= '' then
  local owner, _, t, e, s, _, l = match(text, '^w (%x+) (%d+) (%d+) (%d+) (%d+) (%a) (.*)$')
  add(owner, 'w', tonumber(t), tonumber(s), tonumber(e), l)
end
return reply
