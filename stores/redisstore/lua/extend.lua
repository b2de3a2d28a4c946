-- Extend. ARGV[1] is packed: owner, attempt, TTL in microseconds, floor. Checking
-- the owner and raising the counter are one step, which is what makes a token
-- that was written back to a quorum a fencing token.
local try, ttl, least
owner, try, ttl, least = match(ARGV[1], '^(%x+) (%d+) (%d+) (%d+)$')
try, ttl, least = tonumber(try), tonumber(ttl), tonumber(least)
local stop = open(got[1])
if stop then return stop end
open_counter(got[3])
settle(got[2], known)
if waited then line().settle() end
if out_of_reach(least) then return invalid('the floor of this request is out of reach') end

local m, t, e, s, l
if vote == 'r' then
  m, t, e, s, l = reader(owner)
elseif id == owner then
  m, t, e, s, l = attempt, token, ends, since, label
end
if m ~= try then return refuse('not held', m) end
t, e = max(t, least), max(e, now + ttl)
if t >= LIMIT then return invalid('no token is left below 2^53 for this name') end
count(t, vote == 'w')
if vote == 'w' then
  token, ends = t, e
  write()
else
  read(owner, m, t, e, s, l)
end
return granted(t)
